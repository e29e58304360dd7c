"""Modalities are data: a name with its period, jitter, tolerance and weight; never an `if`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Modality:
    """A kind of input.

    `period_ms` is None for what comes when it comes (a typed request). `tolerance_ms` is how late
    a sample may be and still be worth using. `weight` is its base share in the scheduler.
    `main` marks the channel that degradation protects.
    """

    name: str
    period_ms: float | None = None
    jitter_ms: float = 0.0
    tolerance_ms: float | None = None
    weight: float = 1.0
    main: bool = False


DEFAULT_MODALITIES: tuple[Modality, ...] = (
    Modality("image"),
    Modality("video", period_ms=16.7, jitter_ms=2.1, tolerance_ms=33, weight=3),
    Modality("text"),
    Modality("audio", period_ms=100, jitter_ms=14.3, tolerance_ms=200, weight=5),
    Modality("document"),
    Modality("thermal", period_ms=33.3, tolerance_ms=66),
    Modality("imu", period_ms=1, jitter_ms=0.02, tolerance_ms=10, weight=8),
    Modality("pose", period_ms=11.1, jitter_ms=3.2, tolerance_ms=33),
    Modality("hand", period_ms=33.3, jitter_ms=18.7, tolerance_ms=66),
    Modality("lidar", period_ms=100, tolerance_ms=150),
    Modality("event", tolerance_ms=50, weight=8),
)
"""What a pipeline file starts from; its own `modalities` section overrides and adds."""
