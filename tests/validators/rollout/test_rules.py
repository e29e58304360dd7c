from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.validators.rollout.simulation import Behaviour, simulate
from validators.contracts.deployment import RevisionStats
from validators.contracts.digest import canonical_json
from validators.contracts.documents import load
from validators.contracts.errors import BadInput
from validators.contracts.verdict import Outcome
from validators.rollout import (
    Advance,
    CanaryPlan,
    Ending,
    Hold,
    Measurement,
    Promote,
    RollBack,
    RolloutLimits,
    RolloutState,
    advance_rollout,
    assess_rollout,
    begin,
    decide,
    resume,
)

LIMITS = RolloutLimits(slow_ms=300)
PLAN = CanaryPlan(LIMITS, (10, 100), hold_s=5, minimum_requests=20, patience_s=60)
GOOD = Behaviour()
LONG = CanaryPlan(LIMITS, (5, 25, 100), hold_s=30, minimum_requests=20)


def stats(name: str, requests: int, errors: int = 0, latency_ms: float = 40.0) -> RevisionStats:
    return RevisionStats(name, requests, errors, 0, (latency_ms,) * min(requests, 512))


def start() -> RolloutState:
    return begin(PLAN, "new", stats("old", 100), 0.0)


def look(new: int, old: int) -> Measurement:
    return Measurement(stats("new", new), stats("old", old))


def test_a_step_needs_its_time_and_its_requests() -> None:
    state, decision = advance_rollout(start(), look(30, 400), 4.0)
    assert isinstance(decision, Hold) and not decision.inconclusive
    state, decision = advance_rollout(state, look(30, 400), 5.0)
    assert decision == Advance(100) and state.percent == 100
    state, decision = advance_rollout(state, look(40, 400), 11.0)
    assert isinstance(decision, Hold)
    state, decision = advance_rollout(state, look(60, 400), 12.0)
    assert decision == Promote() and state.ending is Ending.PROMOTED


@pytest.mark.parametrize("measurement", [None, look(0, 400), look(19, 400), look(400, 101)])
def test_without_traffic_a_step_holds_inconclusive_and_is_then_rolled_back(
    measurement: Measurement | None,
) -> None:
    state, early = advance_rollout(start(), measurement, 1.0)
    state, late = advance_rollout(state, measurement, 30.0)
    state, last = advance_rollout(state, measurement, 61.0)
    assert isinstance(early, Hold) and not early.inconclusive
    assert isinstance(late, Hold) and late.inconclusive
    assert isinstance(last, RollBack) and not last.measured
    assert state.ending is Ending.UNMEASURED
    assert assess_rollout(state).outcome is Outcome.INCONCLUSIVE


def test_slow_traffic_is_waited_for_and_a_standstill_is_not() -> None:
    state, decision = start(), None
    for count in range(1, 20):
        state, decision = advance_rollout(state, look(count, 100 + count), 50.0 * count)
        assert isinstance(decision, Hold) and decision.inconclusive
    state, decision = advance_rollout(state, look(19, 900), 1010.0)
    assert isinstance(decision, RollBack) and not decision.measured


def test_requests_whose_latency_is_unknown_do_not_pass() -> None:
    measurement = Measurement(RevisionStats("new", 50, 0, 0, ()), stats("old", 400))
    _, decision = advance_rollout(start(), measurement, 10.0)
    assert isinstance(decision, Hold) and decision.inconclusive


def test_each_latency_is_counted_once_though_some_requests_leave_none() -> None:
    latencies = tuple(30 + number / 7 for number in range(40))
    first = RevisionStats("new", 30, 0, 0, latencies[:10])
    state, _ = advance_rollout(start(), Measurement(first, stats("old", 200)), 1.0)
    assert state.step_canary.timed == 10
    second = RevisionStats("new", 70, 2, 0, latencies[:14])
    state, _ = advance_rollout(state, Measurement(second, stats("old", 300)), 2.0)
    assert (state.step_canary.timed, state.step_canary.measured) == (14, 16)
    rolled_over = RevisionStats("new", 900, 2, 0, latencies[20:])
    state, _ = advance_rollout(state, Measurement(rolled_over, stats("old", 400)), 3.0)
    assert state.step_canary.timed == 34


def test_requests_that_clients_got_wrong_are_no_exposure() -> None:
    measurement = Measurement(RevisionStats("new", 500, 0, 0, (40.0,) * 3), stats("old", 900))
    _, decision = advance_rollout(start(), measurement, 10.0)
    assert isinstance(decision, Hold) and "3 of 20" in decision.reason


def test_doubled_latency_is_rolled_back_after_a_few_requests() -> None:
    measurement = Measurement(stats("new", 12, latency_ms=80), stats("old", 250))
    state, decision = advance_rollout(start(), measurement, 1.0)
    assert isinstance(decision, RollBack) and "latency-tail" in decision.reason
    assert assess_rollout(state).outcome is Outcome.FAIL


def test_a_finished_rollout_says_the_same_again() -> None:
    bad = Measurement(stats("new", 12, latency_ms=80), stats("old", 250))
    state, decision = advance_rollout(start(), bad, 1.0)
    again, same = advance_rollout(state, look(900, 900), 500.0)
    assert (again, same) == (state, decision)


def test_a_restarted_gateway_is_counted_from_zero() -> None:
    state, _ = advance_rollout(start(), look(15, 400), 1.0)
    state, decision = advance_rollout(state, look(10, 50), 6.0)
    assert state.total_canary.requests == 25 and decision == Advance(100)


def test_a_resumed_rollout_holds_its_step_afresh_and_keeps_what_it_measured() -> None:
    state, _ = advance_rollout(start(), look(30, 400), 4.0)
    kept = load(RolloutState, canonical_json(state))
    assert kept == state
    resumed = resume(kept, 1000.0)
    assert resumed.total_canary == state.total_canary
    assert isinstance(decide(resumed, 1004.0), Hold)
    assert decide(resumed, 1005.0) == Advance(100)


def first_revision(requests: int, errors: int, latency_ms: float) -> RolloutState:
    measurement = Measurement(stats("new", requests, errors, latency_ms))
    state, _ = advance_rollout(begin(PLAN, "new", None, 0.0), measurement, 10.0)
    return state


def test_a_first_revision_is_judged_by_the_objective_alone_and_becomes_the_reference() -> None:
    state = first_revision(400, 0, 40)
    verdict = assess_rollout(state)
    assert state.ending is Ending.PROMOTED and verdict.outcome is Outcome.WARN
    assert [finding.code for finding in verdict.findings] == ["no-baseline"]


@pytest.mark.parametrize(("errors", "latency_ms"), [(10, 40), (0, 400)])
def test_a_first_revision_beyond_the_objective_is_rolled_back(
    errors: int, latency_ms: float
) -> None:
    state = first_revision(100, errors, latency_ms)
    assert state.ending is Ending.ROLLED_BACK
    assert assess_rollout(state).outcome is Outcome.FAIL


def test_few_requests_pass_with_a_warning_of_what_they_cannot_show() -> None:
    state, _ = advance_rollout(start(), look(30, 400), 5.0)
    state, _ = advance_rollout(state, look(60, 400), 11.0)
    verdict = assess_rollout(state)
    assert verdict.outcome is Outcome.WARN
    assert verdict.findings[0].code == "thin-exposure"


def test_an_unfinished_rollout_is_no_pass() -> None:
    assert assess_rollout(start()).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    "wrong",
    [
        RevisionStats("new", 1, 2, 0, ()),
        RevisionStats("new", -1, 0, 0, ()),
        RevisionStats("new", 1, 0, 0, (float("nan"),)),
    ],
)
def test_counters_that_contradict_each_other_are_refused(wrong: RevisionStats) -> None:
    with pytest.raises(BadInput):
        advance_rollout(start(), Measurement(wrong, stats("old", 200)), 1.0)


@pytest.mark.parametrize("steps", [(), (5, 25), (25, 5, 100), (0, 100), (5, 5, 100)])
def test_steps_that_do_not_rise_to_all_traffic_are_refused(steps: tuple[int, ...]) -> None:
    with pytest.raises(BadInput):
        replace(PLAN, steps=steps)


increments = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 3), st.floats(0.1, 20)),
    max_size=25,
)


@given(increments)
def test_no_step_is_left_upward_without_time_and_exposure(
    looks: list[tuple[int, int, int, float]],
) -> None:
    state, now_s = start(), 0.0
    new = old = errors = 0
    old = 100
    for more_new, more_old, more_errors, passed_s in looks:
        now_s += passed_s
        new, old = new + more_new, old + more_old
        errors = min(errors + more_errors, new)
        measurement = Measurement(stats("new", new, errors), stats("old", old))
        before = state
        state, decision = advance_rollout(state, measurement, now_s)
        if isinstance(decision, Advance | Promote) and before.ending is None:
            assert before.step_canary.requests + more_new >= PLAN.minimum_requests
            assert now_s - before.step_started_s >= PLAN.hold_s
        assert load(RolloutState, canonical_json(state)) == state


def test_a_canary_as_good_as_its_baseline_is_rolled_back_in_fewer_than_one_of_twenty() -> None:
    endings = [simulate(LONG, GOOD, GOOD, seed).ending for seed in range(300)]
    assert endings.count(Ending.ROLLED_BACK) < 0.05 * len(endings)
    assert Ending.UNMEASURED not in endings


@pytest.mark.parametrize(
    ("canary", "metric"),
    [
        (replace(GOOD, median_ms=80), "latency"),
        (replace(GOOD, error_rate=0.05), "error-rate"),
        (replace(GOOD, degraded_rate=0.1), "degraded-share"),
    ],
)
def test_a_canary_that_is_worse_is_found(canary: Behaviour, metric: str) -> None:
    states = [simulate(LONG, GOOD, canary, seed) for seed in range(200)]
    found = [state for state in states if state.ending is Ending.ROLLED_BACK]
    assert len(found) >= 0.95 * len(states)
    assert sum(metric in state.reason for state in found) >= 0.9 * len(found)


def test_a_gateway_restart_in_the_middle_does_not_roll_back() -> None:
    states = [simulate(LONG, GOOD, GOOD, seed, restart_at_s=40) for seed in range(10)]
    assert [state.ending for state in states] == [Ending.PROMOTED] * 10
