"""The rollout gate's answer, from the state in which it ended."""

from __future__ import annotations

from scipy.stats import beta

from validators.contracts.verdict import Finding, Outcome, Verdict, conclude
from validators.rollout.exposure import Metric, Tally
from validators.rollout.sequential import evidence
from validators.rollout.state import Ending, RolloutState, limit_of

GATE = "rollout"
CONFIDENCE = 0.95


def assess_rollout(state: RolloutState) -> Verdict:
    """Judge a rollout: PASS promoted, FAIL rolled back, INCONCLUSIVE unmeasured or unfinished.

    WARN where there was no baseline ("this run becomes the reference"), and where the requests seen
    are too few to bound the error rate by its limit (Clopper-Pearson, one-sided 95 %).
    """
    findings = [*_ending(state), *_first(state), *_thin(state)]
    return conclude(GATE, findings, examined=state.total_canary.requests, metrics=_metrics(state))


def upper_bound(bad: int, total: int, confidence: float = CONFIDENCE) -> float:
    """The one-sided Clopper-Pearson bound on a share; 1 where nothing was seen."""
    if bad >= total:
        return 1.0
    return float(beta.ppf(confidence, bad + 1, total - bad))


def _ending(state: RolloutState) -> list[Finding]:
    match state.ending:
        case Ending.PROMOTED:
            return []
        case Ending.ROLLED_BACK:
            return [
                Finding(
                    GATE, "worse-than-allowed", state.canary, Outcome.FAIL, state.reason,
                    f"{state.plan.limits.false_rollback_rate:.0%} false roll-backs at most",
                    "Find out why the canary is worse, build it anew and release again.",
                    waivable=False,
                )
            ]  # fmt: skip
        case Ending.UNMEASURED:
            return [
                Finding(
                    GATE, "no-traffic", state.canary, Outcome.INCONCLUSIVE, state.reason,
                    f"{state.plan.minimum_requests} requests in each step",
                    "Send traffic while the canary is on, or give the steps more patience.",
                )
            ]  # fmt: skip
        case None:
            return [
                Finding(
                    GATE, "unfinished", state.canary, Outcome.INCONCLUSIVE,
                    f"step {state.step + 1} of {len(state.steps)}", "all steps",
                    "Resume the rollout.",
                )
            ]  # fmt: skip


def _first(state: RolloutState) -> list[Finding]:
    if state.stable is not None:
        return []
    return [
        Finding(
            GATE, "no-baseline", state.canary, Outcome.WARN, "no revision served before",
            "a concurrent baseline",
            "This run becomes the reference: it was judged against the SLO alone.",
        )
    ]  # fmt: skip


def _thin(state: RolloutState) -> list[Finding]:
    limit = state.plan.limits.error_rate
    bound = upper_bound(*state.total_canary.count(Metric.ERRORS))
    if state.ending is not Ending.PROMOTED or bound <= limit:
        return []
    return [
        Finding(
            GATE, "thin-exposure", state.canary, Outcome.WARN,
            round(bound, 4), limit,
            f"{state.total_canary.requests} requests bound the error rate no better than this: "
            "raise minimum_requests to be surer.",
        )
    ]  # fmt: skip


def _metrics(state: RolloutState) -> dict[str, float]:
    figures: dict[str, float] = {}
    sides: tuple[tuple[str, Tally], ...] = (
        ("canary", state.total_canary),
        ("stable", state.total_stable),
    )
    for name, tally in sides:
        figures[f"{name}_requests"] = tally.requests
        for metric in Metric:
            share = tally.share(metric)
            if share is not None:
                figures[f"{name}_{metric.value.replace('-', '_')}"] = share
    for wealth in state.wealth:
        label = wealth.metric.value.replace("-", "_")
        figures[f"{label}_log_evidence"] = max(evidence(wealth.baseline), evidence(wealth.limit))
        figures[f"{label}_limit"] = limit_of(wealth.metric, state.plan.limits)
    if state.tail_ms is not None:
        figures["tail_threshold_ms"] = state.tail_ms
    return figures
