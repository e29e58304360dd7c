"""Releases that are killed (SIGKILL) anywhere and started again: they resume, and leave nothing."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.scenarios.small import SERVICE, Project
from tests.scenarios.stage import Stage, release_arguments
from tests.scenarios.warm import Run

pytestmark = pytest.mark.slow

BOUNDARIES = (
    "contracts", "ingest", "deidentify", "privacy", "quality", "export image", "export text",
    "lineage", "engine image by onnxruntime", "engine text by openvino", "parity", "recall",
    "drift", "compatibility", "rehearsal", "bundle", "register", "review", "rollout",
)  # fmt: skip
"""Steps in the order of their ends, as the progress lines name them."""

LOOK_EVERY_S = 0.002
PATIENCE_S = 240


def kill_when(run: Run, due: Callable[[], bool]) -> bool:
    """Kill the run as soon as `due` says so; False where it ended before."""
    for look in range(int(PATIENCE_S / LOOK_EVERY_S)):
        if due():
            run.kill()
            return run.wait().code == -9
        if look % 50 == 49 and not run.running():
            return False
        time.sleep(LOOK_EVERY_S)
    raise AssertionError(f"nothing to kill for: {run.progress()}")


def step_ended(run: Run, step: str) -> Callable[[], bool]:
    return lambda: any(line.strip().startswith(step) for line in run.progress().splitlines())


def exists(pattern: str, stage: Stage) -> Callable[[], bool]:
    return lambda: next(stage.home.glob(pattern), None) is not None


def require_clean(stage: Stage, versions: int = 1) -> None:
    """One version, one registry run for it, nothing unreachable, nothing raw, one gateway."""
    rows = stage.registered()
    assert [row["version"] for row in rows] == [str(n) for n in range(versions, 0, -1)]
    assert rows[0]["aliases"] == ["champion"]
    assert stage.registry_runs() == [("FINISHED", "active")] * versions
    assert stage.orphans() == []
    quarantined = [path for path in (stage.home / "quarantine").rglob("*") if path.is_file()]
    assert [path for path in quarantined if "locks" not in path.parts] == []
    assert stage.ledger.verify() == len(stage.ledger.entries(SERVICE))
    (left,) = stage.processes()
    assert "flows.serve" in left.cmdline()
    assert not list((stage.home / "rollouts").iterdir())


@pytest.mark.parametrize(
    "boundaries",
    [
        pytest.param(BOUNDARIES[1::3], id="some"),
        pytest.param(BOUNDARIES, id="all", marks=pytest.mark.heavy),
    ],
)
def test_killed_after_each_step_it_goes_on_with_the_next(
    fresh: Stage, project: Project, boundaries: tuple[str, ...]
) -> None:
    recorded: dict[str, float] = {}
    for boundary in boundaries:
        run = fresh.start(*release_arguments(project))
        assert kill_when(run, step_ended(run, boundary)), run.progress()
        now = {
            path.name: path.stat().st_mtime
            for path in (fresh.home / "objects" / "references").iterdir()
            if path.name.startswith(("steps!", "engines!"))
        }
        done_again = {name for name in recorded if now.get(name) != recorded[name]}
        assert not done_again, f"killed after {boundary}"
        recorded = now
    ran = fresh.release(project)
    assert (ran.code, ran.document["status"]) == (0, "done"), ran.document.get("error")
    assert all(step["cached"] for step in ran.document["steps"])
    assert all(engine["cached"] for engine in ran.document["engines"])
    require_clean(fresh)


@pytest.mark.parametrize(
    ("middle", "pattern"),
    [
        pytest.param("an engine being built", "engines/work/*/engine*", marks=pytest.mark.heavy),
        ("the rehearsal's gateway running", "quarantine/**/gateway-1.json"),
        ("the registry being written", "registry/artifacts/**/bundle.json"),
        pytest.param("the first traffic", "rollouts/shapes.json", marks=pytest.mark.heavy),
    ],
    ids=lambda value: value.partition("/")[0],
)
def test_killed_in_the_middle_of_a_step_it_does_that_step_again(
    fresh: Stage, project: Project, middle: str, pattern: str
) -> None:
    run = fresh.start(*release_arguments(project))
    assert kill_when(run, exists(pattern, fresh)), run.progress()
    ran = fresh.release(project)
    assert (ran.code, ran.document["status"]) == (0, "done"), ran.document.get("error")
    require_clean(fresh)


def test_a_canary_killed_midway_goes_on_from_what_was_measured(
    released: Stage, project: Project
) -> None:
    project.write_image_encoder(noise=0.001)
    project.edit(lambda document: document["deploy"].update(hold_s=2, minimum_requests=40))
    run = released.start(*release_arguments(project))

    record = released.home / "rollouts" / f"{SERVICE}.json"
    assert kill_when(run, lambda: canary_requests(record) > 20), run.progress()
    before = canary_requests(record)
    status = released.cli("status", SERVICE, "--json").document["deployment"]
    assert (status["phase"], status["canary_percent"]) == ("canary", 50)
    ran = released.cli("deploy", SERVICE, "--json")
    assert ran.code == 0, ran.document
    assert ran.document["deployment"]["canary"] is None
    metrics = ran.document["verdicts"][0]["metrics"]
    assert metrics["canary_requests"] >= before
    assert released.aliases() == {"champion": "2", "rollback": "1"}
    assert released.orphans() == []


def canary_requests(record: Path) -> int:
    """What the rollout under way has measured of its canary; 0 where there is none."""
    if not record.exists():
        return 0
    return int(json.loads(record.read_bytes())["state"]["total_canary"]["requests"])


@pytest.mark.heavy
def test_killed_at_thirty_random_moments_it_still_ends_clean(
    fresh: Stage, project: Project
) -> None:
    drawn = random.Random(17)
    for _ in range(30):
        run = fresh.start(*release_arguments(project))
        due = time.monotonic() + drawn.uniform(0.3, 9.0)
        if not kill_when(run, lambda due=due: time.monotonic() > due):  # type: ignore[misc]
            assert run.wait().code == 0
    ran = fresh.release(project)
    assert (ran.code, ran.document["status"]) == (0, "done"), ran.document.get("error")
    require_clean(fresh)
