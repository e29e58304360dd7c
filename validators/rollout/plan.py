"""How traffic moves, and what a canary may not exceed."""

from __future__ import annotations

from dataclasses import dataclass, field

from validators.contracts.errors import BadInput
from validators.contracts.pipeline import Deployment
from validators.contracts.slo import CLASS_BOUNDS, Slo

PATIENCE_S = 60.0
PATIENCE_HOLDS = 10


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    """The objective, and how sure a roll-back has to be.

    `slow_ms` is the SLO's latency and `slow_share` the share of requests that may exceed it.
    `latency_margin` is how much over the baseline's P95 still counts as the same latency.
    `false_rollback_rate` bounds, over the whole rollout and all tests together, the chance that a
    canary as good as its baseline is rolled back.
    """

    slow_ms: float
    slow_share: float = 0.01
    error_rate: float = 0.01
    degraded_rate: float = 0.10
    latency_margin: float = 0.25
    false_rollback_rate: float = 0.04

    def __post_init__(self) -> None:
        shares = (self.slow_share, self.error_rate, self.degraded_rate, self.false_rollback_rate)
        if not all(0 < share < 1 for share in shares):
            raise BadInput(
                "a rollout limit is not a share between 0 and 1",
                where=f"{shares}",
                remedy="Give the shares of requests that may be slow, fail or be degraded.",
            )
        if self.slow_ms <= 0 or self.latency_margin < 0:
            raise BadInput("a rollout's latency limit is not positive", where=f"{self.slow_ms} ms")

    @staticmethod
    def from_slo(slo: Slo) -> RolloutLimits:
        """The limits of a service's objective; an error rate of 0 is tested as 1 in 1,000."""
        share = 1 - CLASS_BOUNDS[slo.slo_class].percentile
        return RolloutLimits(
            slow_ms=slo.p99_ms,
            slow_share=round(share, 9),
            error_rate=min(max(slo.error_rate, 0.001), 0.999),
        )


@dataclass(frozen=True, slots=True)
class CanaryPlan:
    """The steps of a canary.

    `steps` are percents of traffic in rising order, ending at 100. Each is held for `hold_s` at
    least and until `minimum_requests` were measured in it on canary and baseline both. A step that
    gets none of what it lacks for `patience_s` is inconclusive and rolled back.
    """

    limits: RolloutLimits
    steps: tuple[int, ...] = field(default=(5, 25, 100))
    hold_s: float = 5.0
    minimum_requests: int = 20
    patience_s: float = PATIENCE_S

    def __post_init__(self) -> None:
        rising = all(low < high for low, high in zip(self.steps, self.steps[1:], strict=False))
        if not self.steps or not rising or self.steps[0] < 1 or self.steps[-1] != 100:
            raise BadInput(
                f"the canary steps {self.steps} do not rise from at least 1 to 100",
                remedy="Write them like [5, 25, 100].",
            )
        if self.hold_s < 0 or self.patience_s < self.hold_s or self.minimum_requests < 1:
            raise BadInput(
                "a canary step needs a holding time, one request at least and patience for both",
                where=f"hold {self.hold_s} s, patience {self.patience_s} s",
                remedy="Make patience_s at least hold_s, and minimum_requests at least 1.",
            )

    @staticmethod
    def from_deployment(deployment: Deployment, slo: Slo) -> CanaryPlan:
        """The plan of a pipeline's `deploy` section."""
        return CanaryPlan(
            RolloutLimits.from_slo(slo),
            deployment.canary,
            deployment.hold_s,
            deployment.minimum_requests,
            max(PATIENCE_S, PATIENCE_HOLDS * deployment.hold_s),
        )
