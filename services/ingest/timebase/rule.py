"""What is declared for a track of a recording: target, tolerance and what a gap means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from services.ingest.timebase.ticks import to_ns
from validators.contracts.modality import DEFAULT_MODALITIES, NEVER_INTERPOLATED, Gap, Modality

MODALITY_OF: Mapping[str, str] = {
    "video": "video", "audio": "audio", "document": "document", "events": "event",
    "sensors": "imu",
}  # fmt: skip
"""A track's name in the manifest to the modality that its policy is declared for."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a track is brought to: ticks a second, and how far from its tick an item may be."""

    rate_hz: Fraction
    tolerance_ms: float


TARGETS: Mapping[str, Target] = {
    "video": Target(Fraction(30), 33),
    "audio": Target(Fraction(25), 40),
    "document": Target(Fraction(25), 200),
    "events": Target(Fraction(25), 50),
    "sensors": Target(Fraction(25), 10),
}
"""Video 30 frames/s within 33 ms, audio features (100 a second) and pages brought to 25 a second
within 40 and 200 ms; events and sensors as close as their modalities' own tolerance."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How one track is put on the time base. `hold_ns` is the most age of a held item.

    `numeric` says whether its values may be interpolated; `periodic` whether something is due at
    every moment (a frame) or only when it comes (a message).
    """

    gap: Gap
    tolerance_ns: int
    hold_ns: int
    numeric: bool = True
    periodic: bool = True


def rule_of(
    track: str,
    *,
    periodic: bool,
    modalities: Mapping[str, Modality] | None = None,
    tolerance_ms: Mapping[str, float] | None = None,
) -> Rule:
    """The rule of a track by its name, from what a pipeline declares over what is built in."""
    name = MODALITY_OF[track]
    built_in = {item.name: item for item in DEFAULT_MODALITIES}
    modality = (modalities or {}).get(name, built_in[name])
    tolerance = (tolerance_ms or {}).get(track, TARGETS[track].tolerance_ms)
    return Rule(
        gap=modality.gap,
        tolerance_ns=to_ns(tolerance),
        hold_ns=to_ns(modality.hold_ms),
        numeric=name not in NEVER_INTERPOLATED,
        periodic=periodic,
    )
