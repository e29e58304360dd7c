"""Small named rules over a rollout's state; the first that has something to say decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from validators.rollout.exposure import Measurement, Metric
from validators.rollout.sequential import evidence, threshold
from validators.rollout.state import (
    LIMITED,
    Ending,
    RolloutState,
    enter_next_step,
    limit_of,
    observe,
)


@dataclass(frozen=True, slots=True)
class Hold:
    """Leave the traffic as it is. `inconclusive`: the step should be over, and is not measured."""

    reason: str
    inconclusive: bool = False


@dataclass(frozen=True, slots=True)
class Advance:
    percent: int


@dataclass(frozen=True, slots=True)
class Promote:
    pass


@dataclass(frozen=True, slots=True)
class RollBack:
    reason: str
    measured: bool = True  # False: for want of traffic, not for what the canary did


Decision = Hold | Advance | Promote | RollBack
Rule = Callable[[RolloutState, float], Decision | None]


def advance_rollout(
    state: RolloutState, measurement: Measurement | None, now_s: float
) -> tuple[RolloutState, Decision]:
    """One look: the state to keep, and what to do with the traffic.

    Keep the state durably before acting. `measurement` is None where the counters could not be
    read: time goes on, and a step that stays unmeasured ends in a roll-back.
    """
    if measurement is not None and state.ending is None:
        state = observe(state, measurement, now_s)
    decision = decide(state, now_s)
    match decision:
        case Advance():
            return enter_next_step(state, now_s), decision
        case Promote():
            return replace(state, ending=Ending.PROMOTED), decision
        case RollBack(reason, measured):
            ending = Ending.ROLLED_BACK if measured else Ending.UNMEASURED
            return replace(state, ending=ending, reason=reason), decision
        case Hold():
            return state, decision


def decide(state: RolloutState, now_s: float) -> Decision:
    """What to do now. The same state and time always give the same answer."""
    for rule in RULES:
        decision = rule(state, now_s)
        if decision is not None:
            return decision
    return Promote()


def repeat_the_ending(state: RolloutState, now_s: float) -> Decision | None:
    """A rollout that is over stays over: whoever was killed before acting is told again."""
    if state.ending is None:
        return None
    if state.ending is Ending.PROMOTED:
        return Promote()
    return RollBack(state.reason, measured=state.ending is Ending.ROLLED_BACK)


def roll_back_worse_than_baseline(state: RolloutState, now_s: float) -> Decision | None:
    bound = threshold(state.plan.limits.false_rollback_rate, state.tests)
    for wealth in state.wealth:
        if evidence(wealth.baseline) >= bound:
            return RollBack(
                f"{wealth.metric.value} {_percent(state, wealth.metric, 'canary')} against "
                f"{_percent(state, wealth.metric, 'stable')} of {state.stable}"
            )
    return None


def roll_back_over_limit(state: RolloutState, now_s: float) -> Decision | None:
    bound = threshold(state.plan.limits.false_rollback_rate, state.tests)
    for wealth in state.wealth:
        if wealth.metric in LIMITED and evidence(wealth.limit) >= bound:
            limit = limit_of(wealth.metric, state.plan.limits)
            return RollBack(
                f"{wealth.metric.value} {_percent(state, wealth.metric, 'canary')}, "
                f"limit {limit:.2%}"
            )
    return None


def wait_for_exposure(state: RolloutState, now_s: float) -> Decision | None:
    """Nothing unmeasured passes: hold, then call it inconclusive, then roll back.

    Patience is for the next request that the step lacks, so slow traffic is not no traffic.
    """
    lacking = _lacking(state)
    if lacking is None:
        return None
    idle_s = now_s - state.progressed_s
    if idle_s >= state.plan.patience_s:
        return RollBack(f"inconclusive: {lacking}, none for {idle_s:.0f} s", measured=False)
    return Hold(lacking, inconclusive=now_s - state.step_started_s >= state.plan.hold_s)


def hold_the_step(state: RolloutState, now_s: float) -> Decision | None:
    left_s = state.plan.hold_s - (now_s - state.step_started_s)
    return Hold(f"{left_s:.1f} s of the step are left") if left_s > 0 else None


def go_to_next_step(state: RolloutState, now_s: float) -> Decision | None:
    if state.step + 1 < len(state.steps):
        return Advance(state.steps[state.step + 1])
    return None


RULES: tuple[Rule, ...] = (
    repeat_the_ending,
    roll_back_worse_than_baseline,
    roll_back_over_limit,
    wait_for_exposure,
    hold_the_step,
    go_to_next_step,
)


def _lacking(state: RolloutState) -> str | None:
    """What this step has not measured yet."""
    wanted = state.plan.minimum_requests
    canary, stable = state.step_canary.measured, state.step_stable.measured
    if canary < wanted:
        return f"{canary} of {wanted} requests measured on {state.canary}"
    if state.has_baseline and stable < wanted:
        return f"{stable} of {wanted} requests measured on {state.stable}"
    return None


def _percent(state: RolloutState, metric: Metric, side: str) -> str:
    tally = state.total_canary if side == "canary" else state.total_stable
    bad, total = tally.count(metric)
    return f"{bad}/{total}"
