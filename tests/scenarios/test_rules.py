"""Who may release beside whom, what a waiver covers, and what is built for other machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.small import SERVICE, Project, Row, picture
from tests.scenarios.stage import Stage, findings, outcomes, release_arguments
from tests.scenarios.test_interruption import kill_when, step_ended
from tests.services.media_files import encode

pytestmark = pytest.mark.slow

DARK = "quality/out-of-range-brightness/red-square"


def spoil_one(project: Project) -> None:
    """A picture that the quality gate refuses; the drift gate then ends the release."""

    def darken(rows: list[Row]) -> None:
        rows[0] |= {"image": "media/dark.png"}

    project.collect(darken, dark__png=encode(picture("circle", "black", paper=0, ink_share=0)))
    project.edit(lambda document: document["gates"]["drift"].update(minimum_samples=500))


def waive(project: Project, finding: str, until: str) -> None:
    waiver = {"finding": finding, "owner": "ana", "reason": "looked at it", "until": until}
    project.edit(lambda document: document["gates"].update(waivers=[waiver]))


def names(document: dict[str, object], gate: str) -> list[str]:
    return ["/".join((f["gate"], f["code"], f["subject"])) for f in findings(document, gate)]


def test_a_second_release_of_the_same_service_is_refused_while_one_runs(
    fresh: Stage, project: Project
) -> None:
    first = fresh.start(*release_arguments(project))
    seen = step_ended(first, "contracts")
    while not seen():
        assert first.running(), first.progress()
    second = fresh.release(project)
    assert (second.code, second.document["status"]) == (1, "failed")
    assert second.document["error"]["what"].startswith(f"a release of {SERVICE} is running")
    assert second.document["error"]["remedy"]
    assert kill_when(first, lambda: True)


def test_two_services_are_released_side_by_side(
    released: Stage, project: Project, tmp_path: Path
) -> None:
    other = Project(tmp_path / "other")
    other.edit(lambda document: document.update(service="forms"))
    project.write_image_encoder(noise=0.001)
    both = [released.start(*release_arguments(item), "--json") for item in (project, other)]
    ended = [run.wait() for run in both]
    assert [run.code for run in ended] == [0, 0], [run.document.get("error") for run in ended]
    assert [run.document["model_version"]["version"] for run in ended] == ["2", "1"]
    assert released.orphans() == []


def test_a_waiver_of_the_named_finding_lets_it_pass_and_is_named(
    released: Stage, project: Project
) -> None:
    spoil_one(project)
    waive(project, DARK, "2200-01-31")
    document = released.release(project).document
    assert outcomes(document)["quality"] == "FAIL"  # the picture has more than one fault
    others = [name for name in names(document, "quality") if name != DARK]
    waivers = [
        {"finding": name, "owner": "ana", "reason": "looked at it", "until": "2200-01-31"}
        for name in (DARK, *others)
    ]
    project.edit(lambda document: document["gates"].update(waivers=waivers))
    document = released.release(project).document
    assert outcomes(document)["quality"] == "WARN"
    assert findings(document, "quality")[0]["remedy"].startswith("Waived by ana (looked at it)")
    assert list(outcomes(document))[-1] == "drift"  # it went on


def test_a_waiver_that_has_expired_covers_nothing(released: Stage, project: Project) -> None:
    spoil_one(project)
    waive(project, DARK, "2020-01-31")
    ran = released.release(project)
    assert ran.code == 3
    assert outcomes(ran.document)["quality"] == "FAIL"
    assert DARK in names(ran.document, "quality")


def test_what_nobody_may_waive_stays_refused(released: Stage, project: Project) -> None:
    def lead_out(rows: list[Row]) -> None:
        rows[0] |= {"image": "../../models/image.onnx"}

    project.collect(lead_out)
    waive(project, "ingest/path-outside-folder/red-square", "2200-01-31")
    ran = released.release(project)
    assert ran.code == 3
    assert names(ran.document, "ingest") == ["ingest/path-outside-folder/red-square"]
    assert outcomes(ran.document)["ingest"] == "FAIL"


def test_plans_for_other_hardware_are_built_and_stay_unverified(
    released: Stage, project: Project
) -> None:
    plan = {"backend": "tensorrt_rtx", "targets": ["SM89"]}
    project.edit(lambda document: document["backends"].append(plan))
    ran = released.release(project, "--no-deploy")
    assert ran.code == 0, ran.document.get("error")
    plans = [item for item in ran.document["engines"] if item["backend"] == "tensorrt_rtx"]
    assert [(item["target"], item["state"]) for item in plans] == [("SM89", "BUILT")] * 2
    assert outcomes(ran.document)["parity"] == "WARN"
    built_only = [f for f in findings(ran.document, "parity") if f["code"] == "built-only"]
    assert len(built_only) == 2
    assert all("on a host with SM89" in finding["remedy"] for finding in built_only)
    assert released.cli("deploy", SERVICE, "2", "--json").code == 0
    assert released.orphans() == []


def test_a_champion_whose_record_is_lost_is_no_reason_to_pass(
    released: Stage, project: Project
) -> None:
    store = released.store
    (record,) = store.references("releases/")
    store.delete_reference(record)
    project.write_image_encoder(noise=0.001)
    ran = released.release(project)
    assert ran.code != 0
    assert "no record of bundle" in ran.document["error"]["what"]
    assert "MODALGATE_STORE" in ran.document["error"]["remedy"]
    assert released.processes() == []
