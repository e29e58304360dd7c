"""For every gate, an input that stops the release there, and one at its border that does not."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.gates.data_sets import build
from tests.scenarios.small import SERVICE, Project, Row, picture
from tests.scenarios.stage import Stage, findings, outcomes
from tests.scenarios.warm import Ran
from tests.services.media_files import encode

pytestmark = pytest.mark.slow

GATES = Path(__file__).parent / "gates"


@dataclass(frozen=True)
class Stop:
    """What stops a release at a gate: an edit, and the finding that has to be named."""

    gate: str
    finding: str
    edit: Callable[[Project], object]
    code: int = 3


def committed(gate: str) -> Callable[[Project], object]:
    """The gate's committed data set in the place of the project's."""

    def edit(project: Project) -> None:
        build(GATES / gate, "blocks", project.folder / "committed")
        project.edit(lambda document: document["data"].update(folder="committed"))

    return edit


def mix_captions(project: Project) -> None:
    def mix(rows: list[Row]) -> None:
        captions = [row["text"] for row in rows]
        random.Random(4).shuffle(captions)
        for row, caption in zip(rows, captions, strict=True):
            row["text"] = caption

    project.collect(mix)


def drop_output(project: Project) -> None:
    project.edit(lambda document: document["encoders"]["image"]["outputs"].pop())


def set_gate(gate: str, **values: Any) -> Callable[[Project], object]:
    return lambda project: project.edit(
        lambda document: document["gates"].setdefault(gate, {}).update(values)
    )


def set_slo(**values: Any) -> Callable[[Project], object]:
    return lambda project: project.edit(lambda document: document["slo"].update(values))


STOPS = (
    Stop("ingest", "ingest/corrupt-image/torn", committed("ingest")),
    Stop("ingest", "ingest/nothing-measured/ingest", lambda p: p.collect(list.clear), code=6),
    Stop("privacy", "privacy/name-visible/selfie@text:12-16", committed("privacy")),
    Stop("quality", "quality/out-of-range-brightness/capped", committed("quality")),
    Stop("lineage", "lineage/unseen-channels/IR+RGB", committed("lineage")),
    Stop("parity", "parity/relative-difference/", lambda p: p.write_image_encoder(detour=1e6)),
    Stop("recall", "recall/near-chance/image", mix_captions),
    Stop("drift", "drift/drifted/image.brightness",
         lambda p: p.draw(lambda shape, colour: picture(shape, colour, paper=205))),
    Stop("drift", "drift/too-few-samples/", set_gate("drift", minimum_samples=500), code=6),
    Stop("compatibility", "compatibility/output-lost/image.logits", drop_output),
    Stop("rehearsal", "rehearsal/memory-over-limit/service", set_slo(peak_memory_mb=20)),
)  # fmt: skip


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.finding)
def test_a_gate_stops_the_release_with_its_finding_and_keeps_the_evidence(
    released: Stage, project: Project, stop: Stop
) -> None:
    before = released.aliases()
    stop.edit(project)
    ran = released.release(project)
    document = ran.document
    assert (ran.code, document["status"]) == (stop.code, {3: "blocked", 6: "undecided"}[stop.code])
    named = {"/".join((f["gate"], f["code"], f["subject"])) for f in findings(document, stop.gate)}
    assert any(name.startswith(stop.finding) for name in named), named
    assert document["error"]["where"] in named
    assert document["error"]["remedy"]
    assert list(outcomes(document))[-1] == stop.gate  # nothing after it ran

    kept = released.evidence(stop.gate)
    assert kept["outcome"] == outcomes(document)[stop.gate]
    assert kept["findings"] == findings(document, stop.gate)
    assert any(name.startswith(f"blocked/{SERVICE}/") for name in released.store.references())
    assert released.orphans() == []
    assert (released.aliases(), len(released.registered())) == (before, 1)
    assert released.processes() == []


def test_encoders_that_do_not_fit_stop_before_anything_is_read(fresh: Stage) -> None:
    path = str(GATES / "contracts" / "blocking.yaml")
    ran = fresh.cli("release", path, "--json")
    assert (ran.code, ran.document["status"]) == (3, "blocked")
    assert outcomes(ran.document) == {"contracts": "FAIL"}
    assert not (fresh.home / "registry" / "mlflow.db").exists()


def test_a_lossy_projection_passes_the_contracts_gate_with_a_warning(fresh: Stage) -> None:
    ran = fresh.cli("release", str(GATES / "contracts" / "borderline.yaml"), "--json")
    assert outcomes(ran.document) == {"contracts": "WARN"}
    assert ran.code == 2  # that file brings no data
    assert "data" in ran.document["error"]["where"]


def test_a_canary_slower_than_the_version_before_it_gives_the_traffic_back(
    released: Stage, project: Project, first_release: tuple[Ran, Ran]
) -> None:
    project.write_image_encoder(slow_rounds=120)
    project.edit(lambda document: document["deploy"].update(minimum_requests=80))
    ran = released.release(project)
    document = ran.document
    assert (ran.code, document["status"]) == (5, "rolled-back"), document.get("error")
    assert outcomes(document)["rehearsal"] in ("PASS", "WARN")
    rollout = {item["code"]: item["outcome"] for item in findings(document, "rollout")}
    assert "FAIL" in rollout.values(), rollout
    assert document["deployment"]["stable"] == first_release[0].document["bundle"][7:19]
    assert document["deployment"]["canary"] is None
    assert released.evidence("rollout")["findings"] == findings(document, "rollout")
    assert released.aliases()["champion"] == "1"
    assert released.ledger.entries(SERVICE)[-1].action == "roll-back"


@pytest.fixture(scope="module")
def at_the_border(
    stage: Stage, first_release: tuple[Ran, Ran], tmp_path_factory: pytest.TempPathFactory
) -> Ran:
    """One release that comes close to the limit of each gate."""
    stage.restore("released")
    project = Project(tmp_path_factory.mktemp("border") / "project")
    metrics = {v["gate"]: v["metrics"] for v in first_release[0].document["verdicts"]}
    memory_mb = metrics["rehearsal"]["peak_memory_mb"]
    project.write_image_encoder(noise=0.01, detour=3e3)
    project.collect(
        edge_rows,
        torn__png=encode(picture("circle", "red"))[:60],
        dusk__png=encode(picture("circle", "grey", paper=12, ink_share=0.5)),
    )
    set_slo(peak_memory_mb=round(memory_mb * 1.06, 1))(project)
    set_gate("recall", over_chance=4)(project)
    ran = stage.release(project)
    stage.clear()
    return ran


def edge_rows(rows: list[Row]) -> None:
    """A torn picture, a dark one at dusk, and a caption with a name in it."""
    tags = rows[0]["tags"]
    rows[0] |= {"text": f"{rows[0]['text']} for Adelaide Rosella"}
    rows[1] |= {"image": "media/dusk.png", "tags": {**rows[1]["tags"], "lighting": "dusk"}}
    rows.append({"id": "torn", "image": "media/torn.png", "text": "a red circle", "tags": tags})


@pytest.mark.parametrize(
    ("gate", "warning"),
    [
        ("ingest", "corrupt-image"),
        ("privacy", None),
        ("quality", None),
        ("lineage", "new-lighting"),
        ("parity", None),
        ("recall", None),
        ("drift", None),
        ("compatibility", "linf-drift"),
        ("rehearsal", "memory-near-limit"),
        ("review", "unattended"),
        ("rollout", "thin-exposure"),
    ],
)
def test_at_its_border_a_gate_lets_the_release_through(
    at_the_border: Ran, gate: str, warning: str | None
) -> None:
    document = at_the_border.document
    assert outcomes(document).get(gate) in ("PASS", "WARN"), document.get("error")
    if warning:
        assert warning in {item["code"] for item in findings(document, gate)}


def test_at_the_border_of_every_gate_the_release_is_done(at_the_border: Ran) -> None:
    document = at_the_border.document
    assert (at_the_border.code, document["status"]) == (0, "done"), document.get("error")
    metrics = {v["gate"]: v["metrics"] for v in document["verdicts"]}
    assert 1e-5 < metrics["parity"]["max_rel_worst"] < 1e-3
    assert 4 <= metrics["recall"]["image.over_chance"] <= 6
