"""Modalities are data: a name with its period, jitter, tolerance and weight; never an `if`."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Gap(enum.Enum):
    """What is done at a moment for which a track has nothing close enough.

    INTERPOLATE between its neighbours, where both are close enough and hold numbers; else DROP.
    DROP the track from that moment. HOLD the last item, up to a declared age. REFUSE the whole
    recording, and likewise where the track is out of step with the others.
    """

    INTERPOLATE = "interpolate"
    DROP = "drop"
    HOLD = "hold"
    REFUSE = "refuse"


NEVER_INTERPOLATED = frozenset({"text", "document", "event", "image", "video"})
"""Half of one text and half of the next is nobody's text, and a blend of frames was never seen."""

DEFAULT_HOLD_MS = 1000.0


@dataclass(frozen=True, slots=True)
class Modality:
    """A kind of input.

    `period_ms` is None for what comes when it comes (a typed request). `tolerance_ms` is how late
    a sample may be and still be worth using. `weight` is its base share in the scheduler.
    `main` marks the channel that degradation protects. `gap` is what ingest does at a moment for
    which a track of this kind has nothing; `hold_ms` is the most age of a held item.
    """

    name: str
    period_ms: float | None = None
    jitter_ms: float = 0.0
    tolerance_ms: float | None = None
    weight: float = 1.0
    main: bool = False
    gap: Gap = Gap.DROP
    hold_ms: float = DEFAULT_HOLD_MS


DEFAULT_MODALITIES: tuple[Modality, ...] = (
    Modality("image"),
    Modality("video", period_ms=16.7, jitter_ms=2.1, tolerance_ms=33, weight=3, gap=Gap.HOLD,
             hold_ms=200),
    Modality("text"),
    Modality("audio", period_ms=100, jitter_ms=14.3, tolerance_ms=200, weight=5,
             gap=Gap.INTERPOLATE),
    Modality("document", gap=Gap.HOLD, hold_ms=60_000),
    Modality("thermal", period_ms=33.3, tolerance_ms=66, gap=Gap.HOLD, hold_ms=200),
    Modality("imu", period_ms=1, jitter_ms=0.02, tolerance_ms=10, weight=8, gap=Gap.INTERPOLATE),
    Modality("pose", period_ms=11.1, jitter_ms=3.2, tolerance_ms=33, gap=Gap.INTERPOLATE),
    Modality("hand", period_ms=33.3, jitter_ms=18.7, tolerance_ms=66, gap=Gap.INTERPOLATE),
    Modality("lidar", period_ms=100, tolerance_ms=150),
    Modality("event", tolerance_ms=50, weight=8),
)  # fmt: skip
"""What a pipeline file starts from; its own `modalities` section overrides and adds."""
