"""What the drift gate goes by, and how many samples it takes."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_TAGS = 8
MAX_SLICES = 16
"""Tags whose slices are tested, and slices of one tag, the largest first."""

SLICE_SHARE = 0.25
"""The part of the false-alarm rate that slices share; features and pairs have the rest."""


class Kind(enum.Enum):
    """What is compared, and so what its effect means (each 0 where nothing differs, 1 at most).

    SCALAR: Kolmogorov-Smirnov distance. CATEGORY: share of rows that changed category (total
    variation beyond chance). ABSENCE: difference of the shares of rows without the column.
    VECTORS: how much better than chance a line in feature space tells the windows apart.
    PAIRS: share of pairs that no longer belong together.
    """

    SCALAR = "scalar"
    CATEGORY = "category"
    ABSENCE = "absence"
    VECTORS = "vectors"
    PAIRS = "pairs"


@dataclass(frozen=True, slots=True)
class DriftSettings:
    """`false_alarm_rate` is per window, over all its features, pairs and slices together.

    Effects below the limit of their kind never alarm, however certain they are; `limits` overrides
    it for single features, by their name. Windows are thinned evenly to
    `maximum_samples` before testing.
    """

    false_alarm_rate: float = 0.01
    minimum_samples: int = 30
    maximum_samples: int = 2000
    scalar_effect: float = 0.15
    category_effect: float = 0.10
    absence_effect: float = 0.05
    vector_effect: float = 0.10
    pair_effect: float = 0.05
    limits: Mapping[str, float] = field(default_factory=dict)
    seed: int = 20

    def limit(self, kind: Kind, subject: str) -> float:
        """The least effect that matters."""
        usual = {
            Kind.SCALAR: self.scalar_effect,
            Kind.CATEGORY: self.category_effect,
            Kind.ABSENCE: self.absence_effect,
            Kind.VECTORS: self.vector_effect,
            Kind.PAIRS: self.pair_effect,
        }[kind]
        return self.limits.get(subject, usual)
