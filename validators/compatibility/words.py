"""Which of the gate's words the measured geometry of one embedding deserves.

Shares are judged by Wilson's one-sided 95 % lower bound, so that a handful of items proves nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from validators.compatibility.measured import CompatibilityWord, Geometry, Spread

_Z_95 = 1.6449


@dataclass(frozen=True, slots=True)
class CompatibilitySettings:
    """What the gate accepts.

    `linf` is the drift of the largest absolute value of an output (mean over items, relative);
    `same_*` and `adapted_*` are what COMPATIBLE and ADAPTER take. `least_rank` and `least_distance`
    tell embeddings from a collapse onto one point.
    """

    linf: float = 0.03
    same_cosine: float = 0.98
    same_overlap: float = 0.7
    found_share: float = 0.8
    least_rank: float = 1.5
    least_distance: float = 1e-3
    most_across: float = 1.5
    adapter_fitted: bool = False
    catalogue_reencoded: bool = False


def word_of(geometry: Geometry, settings: CompatibilitySettings) -> CompatibilityWord | None:
    """The gate's word for one embedding, or None where there are too few items to tell."""
    if is_collapsed(geometry.new_spread, settings):
        return CompatibilityWord.BLOCK
    if _is_same(geometry, settings):
        return CompatibilityWord.COMPATIBLE
    if lower_share(geometry.items, geometry.items) < settings.found_share:
        return None
    if lower_share(geometry.adapted_hits, geometry.held_out) >= settings.found_share:
        return CompatibilityWord.ADAPTER
    return CompatibilityWord.REINDEX


def lower_share(hits: int, total: int) -> float:
    """Wilson's one-sided 95 % lower bound on a share (JASA 22, 1927); 0 where nothing was seen."""
    if total == 0:
        return 0.0
    share, square = hits / total, _Z_95**2
    centre = share + square / (2 * total)
    margin = _Z_95 * math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    return max((centre - margin) / (1 + square / total), 0.0)


def _is_same(geometry: Geometry, settings: CompatibilitySettings) -> bool:
    return (
        geometry.cosine_mean is not None
        and geometry.top1_hits is not None
        and geometry.cosine_mean >= settings.same_cosine
        and geometry.overlap >= settings.same_overlap
        and lower_share(geometry.top1_hits, geometry.items) >= settings.found_share
    )


def is_collapsed(spread: Spread, settings: CompatibilitySettings) -> bool:
    """Whether the vectors are one point, or one line, as far as anybody can tell."""
    return (
        spread.effective_rank < settings.least_rank
        or spread.distance_mean < settings.least_distance
    )
