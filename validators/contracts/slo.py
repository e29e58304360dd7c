"""Service-level objectives: a class with its own bounds, and the declared limits."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class SloClass(enum.Enum):
    OFFLINE = "offline"
    INTERACTIVE = "interactive"
    EDGE = "edge"


@dataclass(frozen=True, slots=True)
class SloBounds:
    """What a class allows at most. `percentile` is the one the class is judged by."""

    percentile: float
    latency_ms: float
    max_modalities: int | None


CLASS_BOUNDS: dict[SloClass, SloBounds] = {
    SloClass.OFFLINE: SloBounds(percentile=0.99, latency_ms=5000, max_modalities=None),
    SloClass.INTERACTIVE: SloBounds(percentile=0.99, latency_ms=300, max_modalities=None),
    SloClass.EDGE: SloBounds(percentile=0.95, latency_ms=80, max_modalities=2),
}


@dataclass(frozen=True, slots=True)
class Slo:
    """The objective of one service. Latencies end to end, from arrival to the last byte."""

    slo_class: SloClass
    p99_ms: float
    soft_limit_ms: float
    peak_memory_mb: float
    consistency: float  # least alignment score of matched pairs, 0..1
    error_rate: float  # share of requests, 0..1
