"""What the quality suites expect of each modality, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Range:
    """The closed range that a measure has to lie in, in the unit of its name."""

    measure: str
    minimum: float
    maximum: float


@dataclass(frozen=True, slots=True)
class Suite:
    """A modality's IANA types and measures. Every measure named here has to be there."""

    media_types: tuple[str, ...]
    ranges: tuple[Range, ...]


DEFAULT_SUITES: Mapping[str, Suite] = MappingProxyType(
    {
        "image": Suite(
            ("image/png",),
            (
                Range("width_px", 16, 8192),
                Range("height_px", 16, 8192),
                Range("brightness", 1, 254.5),  # mean luma: neither a closed lens nor a white page
                Range("contrast", 2, 128),  # standard deviation of luma: not one flat colour
                Range("sharpness", 0.5, 1e6),  # variance of the Laplacian
            ),
        ),
        "audio": Suite(
            ("audio/wav", "application/vnd.modalgate.voice+json"),
            (
                Range("duration_ms", 100, 60_000),
                Range("rms_db", -60, 0),  # of full scale: not silence
                Range("clipped_share", 0, 0.02),
            ),
        ),
        "text": Suite(("text/plain",), (Range("characters", 1, 10_000), Range("words", 1, 2_000))),
    }
)


@dataclass(frozen=True, slots=True)
class QualitySettings:
    """`missing_rate` is the bearable share of samples without an expected modality, 0..1.

    `expected` are the modalities that samples should have; empty means every modality that some
    sample has.
    """

    missing_rate: float = 0.05
    expected: tuple[str, ...] = ()
    suites: Mapping[str, Suite] = field(default_factory=lambda: DEFAULT_SUITES)
