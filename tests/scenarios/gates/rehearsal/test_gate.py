from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from validators.contracts.slo import Slo
from validators.contracts.verdict import GatePolicy, Outcome
from validators.rehearsal import PairScores, assess_rehearsal

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Scenario:
    latencies_ms: tuple[tuple[int, float], ...]  # how many requests took how long
    errors: int
    peak_memory_mb: float
    slo: Slo
    consistency: PairScores


@pytest.mark.parametrize(
    ("name", "outcome", "code"),
    [("blocks", Outcome.FAIL, "p99-over-limit"), ("passes", Outcome.PASS, "")],
)
def test_three_percent_of_slow_requests_block_and_the_fewest_that_bound_p99_pass(
    name: str, outcome: Outcome, code: str
) -> None:
    given = msgspec.json.decode((HERE / f"{name}.json").read_bytes(), type=Scenario)
    latencies = [value for count, value in given.latencies_ms for _ in range(count)]
    verdict = assess_rehearsal(
        latencies, given.errors, given.peak_memory_mb, given.slo, consistency=given.consistency
    )
    assert verdict.outcome is outcome
    assert GatePolicy().stops(verdict) is (name == "blocks")
    assert not code or code in [finding.code for finding in verdict.findings]
