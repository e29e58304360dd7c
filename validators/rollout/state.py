"""All that a rollout remembers, as one frozen value that survives its process.

A document by `canonical_json`, read back by `documents.load`. Whoever resumes calls `resume`, puts
the traffic at `percent` again (the target's verbs are idempotent) and goes on measuring.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace

from validators.contracts.deployment import RevisionStats
from validators.rollout.exposure import Counters, Measurement, Metric, Tally, count_of, new_requests
from validators.rollout.plan import CanaryPlan, RolloutLimits
from validators.rollout.sequential import (
    START,
    bet_against_baseline,
    bet_against_limit,
    expected_share,
)

TAIL_QUANTILE = 0.95
TAIL_SAMPLES = 20
LIMITED = (Metric.ERRORS, Metric.SLOW, Metric.DEGRADED)


class Ending(enum.Enum):
    """How a rollout is over. UNMEASURED: rolled back for want of traffic."""

    PROMOTED = "promoted"
    ROLLED_BACK = "rolled_back"
    UNMEASURED = "unmeasured"


@dataclass(frozen=True, slots=True)
class Wealth:
    """The log wealth of one metric's bets, against the baseline and against the limit."""

    metric: Metric
    baseline: tuple[float, ...] = START
    limit: tuple[float, ...] = START


@dataclass(frozen=True, slots=True)
class RolloutState:
    """Where a rollout stands. Times are seconds of one clock that the caller chooses."""

    plan: CanaryPlan
    canary: str
    stable: str | None
    steps: tuple[int, ...]
    step: int
    step_started_s: float
    progressed_s: float  # when this step last measured a request that it lacked
    tail_ms: float | None
    seen_canary: Counters
    seen_stable: Counters
    step_canary: Tally
    step_stable: Tally
    total_canary: Tally
    total_stable: Tally
    wealth: tuple[Wealth, ...]
    ending: Ending | None = None
    reason: str = ""

    @property
    def percent(self) -> int:
        """The share of traffic that the canary should have now."""
        return self.steps[self.step]

    @property
    def has_baseline(self) -> bool:
        """Whether the stable revision serves beside the canary in this step."""
        return self.stable is not None and self.percent < 100

    @property
    def tests(self) -> int:
        """How many tests share the allowed rate of false roll-backs."""
        return len(LIMITED) if self.stable is None else len(Metric) + len(LIMITED)


def begin(
    plan: CanaryPlan, canary: str, stable: RevisionStats | None, now_s: float
) -> RolloutState:
    """A rollout at its first step. `stable` are the stable revision's counters until now.

    On a first release there is no baseline: the revision has all traffic from the start and is
    judged against the limits alone.
    """
    state = RolloutState(
        plan, canary, stable.name if stable else None, plan.steps if stable else (100,), 0, now_s,
        now_s, None, Counters(), Counters(), Tally(), Tally(), Tally(), Tally(),
        tuple(Wealth(metric) for metric in Metric),
    )  # fmt: skip
    if stable is None:
        return state
    before = new_requests(stable, Counters(), slow_ms=plan.limits.slow_ms, tail_ms=None)
    return replace(
        state,
        seen_stable=count_of(stable),
        total_stable=before,
        tail_ms=_tail_threshold(stable, plan.limits),
    )


def resume(state: RolloutState, now_s: float) -> RolloutState:
    """The state in a new process: the step is held afresh, what was measured stays."""
    return replace(state, step_started_s=now_s, progressed_s=now_s)


def enter_next_step(state: RolloutState, now_s: float) -> RolloutState:
    return replace(
        state,
        step=state.step + 1,
        step_started_s=now_s,
        progressed_s=now_s,
        step_canary=Tally(),
        step_stable=Tally(),
    )


def observe(state: RolloutState, measurement: Measurement, now_s: float) -> RolloutState:
    """The state after one look at the counters.

    Raises:
        BadInput: counters that contradict each other.
    """
    limits, stable = state.plan.limits, measurement.stable
    canary_block = new_requests(
        measurement.canary, state.seen_canary, slow_ms=limits.slow_ms, tail_ms=state.tail_ms
    )
    stable_block, tail_ms = Tally(), state.tail_ms
    if stable is not None and state.stable is not None:
        stable_block = new_requests(
            stable, state.seen_stable, slow_ms=limits.slow_ms, tail_ms=state.tail_ms
        )
        tail_ms = state.tail_ms or _tail_threshold(stable, limits)
    progressed = _progresses(state, canary_block, stable_block)
    return replace(
        state,
        progressed_s=now_s if progressed else state.progressed_s,
        wealth=tuple(_bet(state, item, canary_block, stable_block) for item in state.wealth),
        tail_ms=tail_ms,
        seen_canary=count_of(measurement.canary),
        seen_stable=count_of(stable) if stable else state.seen_stable,
        step_canary=state.step_canary + canary_block,
        step_stable=state.step_stable + stable_block,
        total_canary=state.total_canary + canary_block,
        total_stable=state.total_stable + stable_block,
    )


def limit_of(metric: Metric, limits: RolloutLimits) -> float:
    """The share of requests that may be bad; of the tail, 5 % by its definition."""
    match metric:
        case Metric.ERRORS:
            return limits.error_rate
        case Metric.SLOW:
            return limits.slow_share
        case Metric.DEGRADED:
            return limits.degraded_rate
        case Metric.TAIL:
            return 1 - TAIL_QUANTILE


def _progresses(state: RolloutState, canary: Tally, stable: Tally) -> bool:
    """Whether a block brings requests that the step still lacks."""
    wanted = state.plan.minimum_requests
    lacks_canary = state.step_canary.measured < wanted
    lacks_stable = state.has_baseline and state.step_stable.measured < wanted
    return (lacks_canary and canary.measured > 0) or (
        not lacks_canary and lacks_stable and stable.measured > 0
    )


def _bet(state: RolloutState, wealth: Wealth, canary: Tally, stable: Tally) -> Wealth:
    """Concurrent traffic is compared with the baseline; without one, with the limit.

    The limit is not stricter than what the baseline itself did.
    """
    metric = wealth.metric
    usual = limit_of(metric, state.plan.limits)
    expected = expected_share(*state.total_stable.count(metric), usual)
    if state.has_baseline:
        bets = bet_against_baseline(
            wealth.baseline, canary.count(metric), stable.count(metric), expected
        )
        return replace(wealth, baseline=bets)
    if metric not in LIMITED:
        return wealth
    bets = bet_against_limit(wealth.limit, canary.count(metric), max(usual, expected))
    return replace(wealth, limit=bets)


def _tail_threshold(stable: RevisionStats, limits: RolloutLimits) -> float | None:
    """The baseline's P95 with its margin, once there are enough latencies to have one."""
    if len(stable.latency_ms) < TAIL_SAMPLES:
        return None
    ranked = sorted(stable.latency_ms)
    position = math.ceil(TAIL_QUANTILE * len(ranked)) - 1
    return ranked[position] * (1 + limits.latency_margin)
