"""From counters that only grow to blocks of new requests, each request counted once."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from validators.contracts.deployment import RevisionStats
from validators.contracts.errors import BadInput

MARK = 4
"""How many latencies mark where a sample was last read."""


class Metric(enum.Enum):
    """What is compared: each the share of requests that are bad in one way."""

    ERRORS = "error-rate"
    SLOW = "slow-share"  # over the SLO's latency
    TAIL = "latency-tail"  # over the baseline's P95 and its margin
    DEGRADED = "degraded-share"


@dataclass(frozen=True, slots=True)
class Measurement:
    """The counters of both revisions at one moment; no stable one on a first release."""

    canary: RevisionStats
    stable: RevisionStats | None = None


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters as they were last seen. `last_ms` are the newest latencies, newest last."""

    requests: int = 0
    errors: int = 0
    degraded: int = 0
    last_ms: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Tally:
    """Requests of one revision, and how many were bad. `timed` have a known latency.

    `tail_timed` were seen after the tail's threshold was fixed.
    """

    requests: int = 0
    errors: int = 0
    degraded: int = 0
    timed: int = 0
    slow: int = 0
    tail_timed: int = 0
    tail: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.requests + other.requests,
            self.errors + other.errors,
            self.degraded + other.degraded,
            self.timed + other.timed,
            self.slow + other.slow,
            self.tail_timed + other.tail_timed,
            self.tail + other.tail,
        )

    @property
    def measured(self) -> int:
        """Requests that say something: answered in a known time, or failed.

        A request that the client got wrong counts as neither.
        """
        return self.timed + self.errors

    def count(self, metric: Metric) -> tuple[int, int]:
        """(bad, all) of a metric."""
        match metric:
            case Metric.ERRORS:
                return self.errors, self.requests
            case Metric.DEGRADED:
                return self.degraded, self.requests
            case Metric.SLOW:
                return self.slow, self.timed
            case Metric.TAIL:
                return self.tail, self.tail_timed

    def share(self, metric: Metric) -> float | None:
        bad, total = self.count(metric)
        return bad / total if total else None


def count_of(stats: RevisionStats) -> Counters:
    """What to remember of the counters until the next look."""
    return Counters(stats.requests, stats.errors, stats.degraded, stats.latency_ms[-MARK:])


def new_requests(
    stats: RevisionStats, seen: Counters, *, slow_ms: float, tail_ms: float | None
) -> Tally:
    """What happened since `seen`. Counters that went back belong to a restarted process.

    Raises:
        BadInput: counters or latencies that no gateway can have measured.
    """
    _check(stats)
    if stats.requests < seen.requests:
        seen = Counters()
    requests = stats.requests - seen.requests
    errors = min(max(stats.errors - seen.errors, 0), requests)
    latencies = _newer(stats.latency_ms, seen.last_ms, requests - errors)
    return Tally(
        requests,
        errors,
        min(max(stats.degraded - seen.degraded, 0), requests),
        len(latencies),
        sum(latency > slow_ms for latency in latencies),
        0 if tail_ms is None else len(latencies),
        0 if tail_ms is None else sum(latency > tail_ms for latency in latencies),
    )


def _newer(
    latencies: tuple[float, ...], last: tuple[float, ...], at_most: int
) -> tuple[float, ...]:
    """The latencies after those that were last seen, `at_most` of them.

    Not every request leaves a latency, so the place where the sample goes on is found by the values
    themselves; where they have left the bounded sample, all of it is new.
    """
    start = max(len(latencies) - at_most, 0)
    for end in range(max(start, len(last)), len(latencies) + 1):
        if last and latencies[end - len(last) : end] == last:
            return latencies[end:]
    return latencies[start:]


def _check(stats: RevisionStats) -> None:
    counted = 0 <= stats.errors <= stats.requests and 0 <= stats.degraded <= stats.requests
    timed = all(math.isfinite(latency) and latency >= 0 for latency in stats.latency_ms)
    if not counted or not timed:
        raise BadInput(
            f"the counters of revision {stats.name} contradict each other",
            where=f"{stats.requests} requests, {stats.errors} errors, {stats.degraded} degraded",
            remedy="Use a gateway of the same version as this command.",
        )
