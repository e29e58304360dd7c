"""One command makes a service of a pipeline file; again, it does nothing; then the next version."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.scenarios.small import SERVICE, Project, picture
from tests.scenarios.stage import AUTHOR, PEOPLE, Stage, findings, outcomes, runs
from tests.scenarios.warm import Ran
from tests.services.media_files import encode

pytestmark = pytest.mark.slow

GATES = (
    "contracts", "ingest", "privacy", "quality", "lineage", "parity", "recall", "drift",
    "compatibility", "rehearsal", "review", "rollout",
)  # fmt: skip
FIRST_TIME = {"lineage": "first-release", "drift": "first-release",
              "compatibility": "no-predecessor", "rollout": "no-baseline"}  # fmt: skip


def test_the_command_releases_a_service_and_says_so_in_one_document(
    first_release: tuple[Ran, Ran],
) -> None:
    ran, _ = first_release
    document = ran.document
    assert (ran.code, document["status"]) == (0, "done")
    assert document["bundle"].startswith("sha256:")
    assert document["model_version"] == {"name": SERVICE, "version": "1"}
    assert document["deployment"]["phase"] == "serving"
    assert document["deployment"]["stable"] == document["bundle"][7:19]
    assert document["duration_s"] > 0
    assert document["unchanged"] is False


def test_each_gate_gives_its_verdict_in_order(first_release: tuple[Ran, Ran]) -> None:
    verdicts = first_release[0].document["verdicts"]
    assert tuple(verdict["gate"] for verdict in verdicts) == GATES
    assert {verdict["outcome"] for verdict in verdicts} <= {"PASS", "WARN"}
    assert all({"outcome", "findings"} <= set(verdict) for verdict in verdicts)


@pytest.mark.parametrize(("gate", "code"), FIRST_TIME.items())
def test_a_first_release_warns_that_it_becomes_the_reference(
    first_release: tuple[Ran, Ran], gate: str, code: str
) -> None:
    document = first_release[0].document
    assert outcomes(document)[gate] == "WARN"
    assert code in {finding["code"] for finding in findings(document, gate)}


def test_each_encoder_is_built_by_each_backend_and_verified(
    first_release: tuple[Ran, Ran],
) -> None:
    engines = first_release[0].document["engines"]
    assert {(item["encoder"], item["backend"]) for item in engines} == {
        (encoder, backend)
        for encoder in ("image", "text")
        for backend in ("onnxruntime", "openvino")
    }
    assert {item["state"] for item in engines} == {"VERIFIED"}
    assert {item["precision"] for item in engines} == {"fp32"}
    assert not any(item["cached"] for item in engines)
    assert all(item["target"] and item["key"].startswith("sha256:") for item in engines)


def test_after_stop_nothing_runs(first_release: tuple[Ran, Ran]) -> None:
    ran, stopped = first_release
    assert stopped.document["deployment"]["phase"] == "absent"
    assert not runs(ran.document["deployment"]["pid"])


def test_the_same_again_does_nothing_and_says_so_then_serves_until_stopped(
    released: Stage, project: Project, first_release: tuple[Ran, Ran]
) -> None:
    before = released.inventory()
    again = released.release(project).document
    assert again["status"] == "done"
    assert again["unchanged"] is True
    first = first_release[0].document
    assert (again["bundle"], again["model_version"]) == (first["bundle"], first["model_version"])
    assert all(step["cached"] for step in again["steps"])
    assert all(engine["cached"] for engine in again["engines"])
    assert released.inventory() == before

    url = again["deployment"]["rest_url"]
    assert _captions(url, b"a blue circle", "text/plain")[0] == "a blue circle on paper"
    shown = encode(picture("square", "green"))
    assert "a green square on paper" in _captions(url, shown, "image/png")
    assert released.cli("status", SERVICE, "--json").document["deployment"] == again["deployment"]
    assert released.cli("stop", SERVICE, "--json").code == 0
    assert released.processes() == []


def test_the_next_version_takes_over_behind_a_canary_and_gives_the_traffic_back(
    released: Stage, project: Project, first_release: tuple[Ran, Ran]
) -> None:
    first = first_release[0].document
    project.write_image_encoder(noise=0.001)
    ran = released.release(project)
    second = ran.document
    assert ran.code == 0, second
    assert second["model_version"] == {"name": SERVICE, "version": "2"}
    assert second["unchanged"] is False
    assert outcomes(second)["compatibility"] == "PASS"
    assert "no-baseline" not in {item["code"] for item in findings(second, "rollout")}
    assert {item["encoder"]: item["cached"] for item in second["engines"]} == {
        "image": False, "text": True,
    }  # fmt: skip
    assert second["deployment"]["stable"] == second["bundle"][7:19]
    assert released.aliases() == {"champion": "2", "rollback": "1"}

    back = released.cli("rollback", SERVICE, "--reason", "it was a test", "--json")
    assert back.code == 0
    assert back.document["deployment"]["stable"] == first["bundle"][7:19]
    assert released.aliases() == {"champion": "1"}
    url = back.document["deployment"]["rest_url"]
    assert _captions(url, b"a blue circle", "text/plain")[0] == "a blue circle on paper"
    actions = [entry.action for entry in released.ledger.entries(SERVICE)]
    assert released.ledger.verify() == len(actions)
    assert actions[-3:] == ["roll-back", "move-alias", "move-alias"]  # said, then done


def test_the_flow_is_a_function(
    released: Stage,
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    first_release: tuple[Ran, Ran],
) -> None:
    from flows.release.flow import release

    monkeypatch.setenv("MODALGATE_HOME", str(released.home))
    document = release(str(project.pipeline), author=AUTHOR, approve_as=list(PEOPLE), deploy=False)
    assert all(step.cached for step in document["steps"]), document["steps"]
    assert document["bundle"] == first_release[0].document["bundle"]
    assert document["deployment"] is None
    assert released.processes() == []


def _captions(url: str, content: bytes, content_type: str) -> list[str]:
    answer = httpx.post(
        f"{url}/v1/answer",
        content=content,
        headers={"content-type": content_type, "x-request-timeout-ms": "10000"},
        timeout=60,
    )
    assert answer.status_code == httpx.codes.OK, answer.text
    return [item["caption"] for item in answer.json()["items"]]


def test_the_state_folder_holds_everything(
    first_release: tuple[Ran, Ran], stage: Stage, project: Project
) -> None:
    released_files = {path.name for path in project.folder.iterdir()}
    assert released_files == {"models", "data", "pipeline.yaml"}
    assert {path.name for path in (stage.folder / "kept" / "released").iterdir()} >= {
        "objects", "keys", "registry", "evidence",
    }  # fmt: skip
    assert Path.cwd().joinpath("mlruns").exists() is False
