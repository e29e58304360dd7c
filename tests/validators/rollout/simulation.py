"""A service with two revisions under Poisson traffic, for rollouts in simulated time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from validators.contracts.deployment import RevisionStats
from validators.rollout import CanaryPlan, Measurement, RolloutState, advance_rollout, begin

KEPT = 512


@dataclass(frozen=True)
class Behaviour:
    """How one revision answers: log-normal latencies, independent errors and degradations."""

    median_ms: float = 40.0
    sigma: float = 0.4
    error_rate: float = 0.005
    degraded_rate: float = 0.01


@dataclass
class Served:
    """A revision's counters, as its gateway keeps them."""

    name: str
    behaviour: Behaviour
    requests: int = 0
    errors: int = 0
    degraded: int = 0
    latency_ms: list[float] = field(default_factory=list)

    def serve(self, count: int, load: float, random: np.random.Generator) -> None:
        how = self.behaviour
        self.requests += count
        self.errors += int(random.binomial(count, how.error_rate))
        self.degraded += int(random.binomial(count, how.degraded_rate))
        latencies = load * how.median_ms * np.exp(how.sigma * random.standard_normal(count))
        self.latency_ms = (self.latency_ms + latencies.tolist())[-KEPT:]

    def stats(self) -> RevisionStats:
        return RevisionStats(
            self.name, self.requests, self.errors, self.degraded, tuple(self.latency_ms)
        )


def simulate(
    plan: CanaryPlan,
    stable: Behaviour,
    canary: Behaviour,
    seed: int,
    *,
    rate_rps: float = 50.0,
    look_every_s: float = 1.0,
    restart_at_s: float | None = None,
) -> RolloutState:
    """The state in which a rollout ends. The load on both revisions changes with the time."""
    random = np.random.default_rng(seed)
    old, new = Served("old", stable), Served("new", canary)
    old.serve(300, 1.0, random)
    now_s = 0.0
    state = begin(plan, new.name, old.stats(), now_s)
    while state.ending is None:
        now_s += look_every_s
        if restart_at_s is not None and now_s >= restart_at_s:
            old, new, restart_at_s = Served("old", stable), Served("new", canary), None
        count = int(random.poisson(rate_rps * look_every_s))
        taken = int(random.binomial(count, state.percent / 100))
        load = 1.0 + 0.3 * float(np.sin(now_s / 7))
        new.serve(taken, load, random)
        old.serve(count - taken, load, random)
        state, _ = advance_rollout(state, Measurement(new.stats(), old.stats()), now_s)
    return state
