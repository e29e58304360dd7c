"""What was measured of one encoder in each precision it could run in."""

from __future__ import annotations

import enum
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from validators.contracts.digest import Digest
from validators.contracts.engine import HostIdentity, Precision

GATE = "precision"

NOT_MEASURED = "not-measured"
"""The finding of a candidate that something transient refused: no choice beside it is final."""

WIDEST_FIRST: tuple[Precision, ...] = (
    Precision.FP32,
    Precision.FP16,
    Precision.BF16,
    Precision.INT8,
    Precision.INT4,
)
"""By the bits that are left of a number: fp16 keeps 11 of its significand, bf16 keeps 8."""


class Objective(enum.Enum):
    """What "fastest" means: LATENCY at the smallest batch measured, THROUGHPUT at the largest."""

    LATENCY = "latency"
    THROUGHPUT = "throughput"


@dataclass(frozen=True, slots=True)
class BatchTiming:
    """Calls at one batch size.

    `rounds_ms` has the lower quartile of each round's calls: what other work takes is only ever
    added. Rounds are interleaved: round i of every precision ran next to round i of the others, so
    that noise of the machine hits all alike and rounds compare in pairs. `predicted_ms` is what the
    bandwidth model says, None where it was not asked.
    """

    batch: int
    rounds_ms: tuple[float, ...]
    p50_ms: float  # over all calls
    p99_ms: float
    spread_ms: float  # interquartile range over all calls
    calls: int
    cpu_ms: float  # processor time of a call, mean
    throughput_per_s: float  # items, when calls follow each other
    predicted_ms: float | None = None

    @property
    def utilisation(self) -> float:
        """Processor time over wall time, of one thread."""
        return self.cpu_ms / self.p50_ms


@dataclass(frozen=True, slots=True)
class TaskMetric:
    """How often the engine decides as the source model does. `before` is the source with itself.

    `name` says what is counted: "nearest neighbour kept", "top-1 agreement". `low` and `high` are
    Wilson's 95 % interval of `after`. `overlap` is the mean share of the ten nearest that stay.
    """

    name: str
    output: str
    items: int
    kept: int
    low: float
    high: float
    before: float = 1.0
    overlap: float | None = None

    @property
    def after(self) -> float:
        return self.kept / self.items


@dataclass(frozen=True, slots=True)
class PrecisionMeasurement:
    """One encoder by one backend in one precision on one host. `refused` where there is no engine.

    `transient`: what refused it says nothing about the precision (a child that was killed, a full
    disk), so that another look may find an engine.
    `max_rel` and `cosine_min` are the worst over every case and output; `nonfinite` counts NaN and
    infinity that the source does not have. `resident_bytes` is what loading added to the process.
    `really_share` is the share of its multiplying layers that run in this precision; None where
    the backend does not say.
    """

    precision: Precision
    refused: str = ""  # why it could not be built, loaded or run
    transient: bool = False
    onnx: Digest | None = None  # what it was compiled from: the encoder's own, or a baked one
    engine: Digest | None = None
    timings: tuple[BatchTiming, ...] = ()
    load_ms: float | None = None
    first_call_ms: float | None = None
    resident_bytes: int | None = None
    peak_bytes: int | None = None
    engine_bytes: int | None = None
    build_ms: float | None = None
    max_rel: float | None = None
    cosine_min: float | None = None
    nonfinite: int = 0
    cases: int = 0
    tasks: tuple[TaskMetric, ...] = ()
    really_share: float | None = None

    @property
    def measured(self) -> bool:
        """Whether there is something to judge: times, and deviations from the source."""
        whole = self.max_rel is not None and self.cosine_min is not None
        timed = bool(self.timings) and all(sound(timing) for timing in self.timings)
        return not self.refused and whole and timed

    def timing(self, objective: Objective) -> BatchTiming:
        """The timing that the objective looks at. The measurement has one at least."""
        pick = min if objective is Objective.LATENCY else max
        return pick(self.timings, key=lambda timing: timing.batch)


def sound(timing: BatchTiming) -> bool:
    """Whether every figure of a timing is a positive number."""
    figures = (timing.p50_ms, timing.p99_ms, *timing.rounds_ms)
    return bool(timing.rounds_ms) and all(math.isfinite(x) and x > 0 for x in figures)


def summarise_calls(
    batch: int,
    rounds: Sequence[Sequence[float]],
    cpu_ms: float,
    predicted_ms: float | None = None,
) -> BatchTiming:
    """A timing from the calls of each round, in milliseconds. No round may be empty."""
    calls = sorted(call for part in rounds for call in part)
    p50_ms = statistics.median(calls)
    return BatchTiming(
        batch=batch,
        rounds_ms=tuple(sorted(part)[(len(part) - 1) // 4] for part in rounds),
        p50_ms=p50_ms,
        p99_ms=calls[math.ceil(0.99 * len(calls)) - 1],
        spread_ms=calls[(3 * len(calls) - 1) // 4] - calls[(len(calls) - 1) // 4],
        calls=len(calls),
        cpu_ms=cpu_ms,
        throughput_per_s=1e3 * batch / p50_ms,
        predicted_ms=predicted_ms,
    )


@dataclass(frozen=True, slots=True)
class PrecisionTable:
    """Every candidate of one encoder on one backend and host.

    `real_items` are the released items that tasks were measured on; 0: seeded inputs stood in.
    """

    encoder: str
    backend: str
    target: HostIdentity
    source: Digest  # the encoder's ONNX
    measurements: tuple[PrecisionMeasurement, ...]
    real_items: int = 0
    bandwidth_gb_s: float | None = None  # measured in the same run

    @property
    def subject(self) -> str:
        return f"{self.encoder} on {self.backend}"

    def of(self, precision: Precision) -> PrecisionMeasurement | None:
        return next((m for m in self.measurements if m.precision is precision), None)
