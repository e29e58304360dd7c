from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.contracts.slo import Slo, SloClass
from validators.contracts.verdict import Outcome, Verdict
from validators.rehearsal import PairScores, assess_rehearsal

SLO = Slo(SloClass.INTERACTIVE, 300, 250, 4096, 0.25, 0.01)
PAIRS = PairScores((0.6, 0.5, 0.7, 0.4, 0.5, 0.6), (0.1, 0.0, 0.2, 0.1, 0.0, 0.1))


@dataclass(frozen=True)
class Rehearsal:
    latencies_ms: Sequence[float]
    errors: int
    peak_memory_mb: float | None
    consistency: PairScores | None

    def assess(self, slo: Slo) -> Verdict:
        return assess_rehearsal(
            self.latencies_ms, self.errors, self.peak_memory_mb, slo, consistency=self.consistency
        )


GOOD = Rehearsal((40.0,) * 300, 0, 900.0, PAIRS)


def codes(rehearsal: Rehearsal, slo: Slo = SLO) -> tuple[Outcome, list[str]]:
    verdict = rehearsal.assess(slo)
    return verdict.outcome, [finding.code for finding in verdict.findings]


@pytest.mark.parametrize(
    ("rehearsal", "outcome", "expected"),
    [
        (GOOD, Outcome.PASS, []),
        (replace(GOOD, latencies_ms=(400.0,) * 300), Outcome.FAIL, ["p99-over-limit"]),
        (
            replace(GOOD, latencies_ms=(40.0,) * 298 + (400.0,) * 2),
            Outcome.INCONCLUSIVE,
            ["p99-unsure"],
        ),
        (replace(GOOD, latencies_ms=(260.0,) * 300), Outcome.WARN, ["p99-over-soft-limit"]),
        (
            replace(GOOD, latencies_ms=(40.0,) * 60),
            Outcome.WARN,
            ["too-few-requests", "error-rate-unbounded"],
        ),
        (
            replace(GOOD, latencies_ms=(40.0,) * 59 + (400.0,)),
            Outcome.INCONCLUSIVE,
            ["too-few-requests", "error-rate-unbounded"],
        ),
        (
            replace(GOOD, latencies_ms=(40.0,) * 10),
            Outcome.INCONCLUSIVE,
            ["too-few-requests", "error-rate-unbounded"],
        ),
        (replace(GOOD, latencies_ms=(float("nan"),) * 300), Outcome.ERROR, ["latency-unreadable"]),
        (replace(GOOD, errors=12), Outcome.FAIL, ["error-rate"]),
        (replace(GOOD, errors=4), Outcome.INCONCLUSIVE, ["error-rate-unsure"]),
        (replace(GOOD, errors=2), Outcome.WARN, ["error-rate-unbounded"]),
        (replace(GOOD, peak_memory_mb=5000), Outcome.FAIL, ["memory-over-limit"]),
        (replace(GOOD, peak_memory_mb=4000), Outcome.WARN, ["memory-near-limit"]),
        (replace(GOOD, peak_memory_mb=None), Outcome.INCONCLUSIVE, ["memory-unmeasured"]),
        (replace(GOOD, consistency=None), Outcome.INCONCLUSIVE, ["consistency-unmeasured"]),
        (
            replace(GOOD, consistency=PairScores((0.2,) * 6, (0.0,) * 6)),
            Outcome.FAIL,
            ["consistency-low"],
        ),
        (
            replace(GOOD, consistency=PairScores((0.6,) * 6, (0.6,) * 6)),
            Outcome.FAIL,
            ["pairs-not-separated"],
        ),
        (
            replace(GOOD, consistency=PairScores((float("nan"),) * 6, (0.6,) * 6)),
            Outcome.ERROR,
            ["consistency-unreadable"],
        ),
    ],
)
def test_each_breach_has_its_finding(
    rehearsal: Rehearsal, outcome: Outcome, expected: list[str]
) -> None:
    assert codes(rehearsal) == (outcome, expected)


def test_nothing_measured_is_no_pass() -> None:
    assert codes(Rehearsal((), 0, 100.0, PAIRS))[0] is Outcome.INCONCLUSIVE


def test_an_edge_service_is_judged_by_its_own_percentile() -> None:
    slo = replace(SLO, slo_class=SloClass.EDGE, p99_ms=80, soft_limit_ms=70, error_rate=0.05)
    assert codes(replace(GOOD, latencies_ms=(40.0,) * 59), slo) == (Outcome.PASS, [])


def test_a_service_that_asks_for_no_consistency_needs_no_pairs() -> None:
    assert codes(replace(GOOD, consistency=None), replace(SLO, consistency=0)) == (Outcome.PASS, [])


@given(st.lists(st.floats(0, 1000), max_size=400), st.integers(0, 50))
def test_a_pass_means_that_the_limit_was_kept_and_measured(
    latencies: list[float], errors: int
) -> None:
    verdict = replace(GOOD, latencies_ms=latencies, errors=errors).assess(SLO)
    if verdict.outcome is Outcome.PASS:
        assert len(latencies) >= 299
        assert sum(value > SLO.p99_ms for value in latencies) <= 0.01 * len(latencies)
        assert errors <= SLO.error_rate * (len(latencies) + errors)
