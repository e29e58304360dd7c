"""A caller killed at any step of any verb: whoever calls the verb again finishes the work."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.infra.local_target.places import SERVICE, Place
from tests.infra.local_target.test_target import gateways
from tests.infra.local_target.verbs import VERBS
from validators.contracts.deployment import DeploymentStatus

CHECKOUT = Path(__file__).parents[3]
BEFORE = {
    "first": (),
    "second": ("first",),
    "weigh": ("first", "second"),
    "promote": ("first", "second", "weigh"),
    "roll-back": ("first", "second", "weigh"),
    "stop": ("first",),
}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.target(drain_timeout_s=2).stop(SERVICE)
    assert gateways(place) == []


def die_in(place: Place, verb: str, step: int, moment: str) -> bool:
    """Whether the caller died; False once there are fewer steps than that."""
    command = [sys.executable, "-m", "tests.infra.local_target.doomed_caller"]
    done = subprocess.run(
        [*command, str(place.folder), verb, str(step), moment], cwd=CHECKOUT, check=False
    )
    assert done.returncode in (0, -signal.SIGKILL)
    return done.returncode != 0


def outcome(status: DeploymentStatus) -> tuple[object, ...]:
    revisions = tuple((item.name, item.ready, item.percent) for item in status.revisions)
    return (status.phase, status.stable, status.canary, status.canary_percent, revisions)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("verb", list(VERBS))
def test_a_killed_caller_leaves_a_verb_that_can_be_finished(
    place: Place, verb: str, moment: str
) -> None:
    reference = Place(place.folder / "reference")
    for name in (*BEFORE[verb], verb):
        VERBS[name](reference)
    wanted = outcome(reference.target().status(SERVICE))
    reference.target(drain_timeout_s=2).stop(SERVICE)
    for step in range(1, 30):
        here = Place(place.folder / f"step-{step}")
        try:
            for name in BEFORE[verb]:
                VERBS[name](here)
            died = die_in(here, verb, step, moment)
            VERBS[verb](here)
            assert outcome(here.target().status(SERVICE)) == wanted, f"killed at step {step}"
            assert len(gateways(here)) == (0 if verb == "stop" else 1)
        finally:
            here.target(drain_timeout_s=2).stop(SERVICE)
        assert gateways(here) == []
        if not died:
            return
    pytest.fail("more steps than expected")
