from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from validators.contracts.deployment import RevisionStats
from validators.contracts.verdict import GatePolicy, Outcome
from validators.rollout import (
    CanaryPlan,
    Ending,
    Measurement,
    advance_rollout,
    assess_rollout,
    begin,
)

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Look:
    now_s: float
    canary: RevisionStats
    stable: RevisionStats


@dataclass(frozen=True)
class Scenario:
    plan: CanaryPlan
    stable: RevisionStats
    looks: tuple[Look, ...]


@pytest.mark.parametrize(
    ("name", "ending", "outcome"),
    [
        ("blocks", Ending.ROLLED_BACK, Outcome.FAIL),
        ("passes", Ending.PROMOTED, Outcome.WARN),
    ],
)
def test_tenfold_errors_block_and_a_tenth_more_latency_passes(
    name: str, ending: Ending, outcome: Outcome
) -> None:
    given = msgspec.json.decode((HERE / f"{name}.json").read_bytes(), type=Scenario)
    state = begin(given.plan, "new", given.stable, 0.0)
    for look in given.looks:
        state, _ = advance_rollout(state, Measurement(look.canary, look.stable), look.now_s)
    verdict = assess_rollout(state)
    assert (state.ending, verdict.outcome) == (ending, outcome)
    assert GatePolicy().stops(verdict) is (name == "blocks")
