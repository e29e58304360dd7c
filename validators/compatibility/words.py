"""Which of the gate's words the measured geometry of one embedding deserves.

Lower bounds are judged, never values, so that a handful of items proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from validators.compatibility.adapters import AdapterRecord
from validators.compatibility.estimates import wilson_bounds
from validators.compatibility.measured import CompatibilityWord, Geometry, Spread


@dataclass(frozen=True, slots=True)
class CompatibilitySettings:
    """What the gate accepts.

    `linf` is the drift of the largest absolute value of an output (mean over items, relative);
    `same_*` and `found_share` are what COMPATIBLE and ADAPTER take, `found_share` being the part of
    the old version's right answers that has to stay right. `least_rank` and `least_distance` tell
    embeddings from a collapse onto one point. `adapters` are those fitted and registered for this
    pair of versions. `stored_items`: vectors that would have to be encoded again, where known.
    """

    linf: float = 0.03
    same_cosine: float = 0.98
    same_overlap: float = 0.7
    found_share: float = 0.8
    least_rank: float = 1.5
    least_distance: float = 1e-3
    most_across: float = 1.5
    catalogue_reencoded: bool = False
    stored_items: int | None = None
    adapters: tuple[AdapterRecord, ...] = ()

    def adapter(self, output: str) -> AdapterRecord | None:
        """The registered adapter of an output, if it was measured to keep enough."""
        return next(
            (
                item
                for item in self.adapters
                if item.output == output and item.measured.kept.low >= self.found_share
            ),
            None,
        )


def word_of(geometry: Geometry, settings: CompatibilitySettings) -> CompatibilityWord | None:
    """The gate's word for one embedding, or None where there are too few items to tell."""
    if is_collapsed(geometry.new_spread, settings):
        return CompatibilityWord.BLOCK
    if _is_same(geometry, settings):
        return CompatibilityWord.COMPATIBLE
    if settings.adapter(geometry.output) is not None:
        return CompatibilityWord.ADAPTER
    if lower_share(geometry.found_by_old, geometry.found_by_old) < settings.found_share:
        return None
    if geometry.adapted.low >= settings.found_share:
        return CompatibilityWord.ADAPTER
    return CompatibilityWord.REINDEX


def lower_share(hits: int, total: int) -> float:
    """The lower bound of a counted share; 0 where nothing was seen."""
    return wilson_bounds(hits / total, total)[0] if total else 0.0


def items_needed(settings: CompatibilitySettings) -> int:
    """How many queries have to be right, without one wrong, before a share can be shown."""
    return next((n for n in range(1, 1000) if lower_share(n, n) >= settings.found_share), 1000)


def is_collapsed(spread: Spread, settings: CompatibilitySettings) -> bool:
    """Whether the vectors are one point, or one line, as far as anybody can tell."""
    return (
        spread.effective_rank < settings.least_rank
        or spread.distance_mean < settings.least_distance
    )


def _is_same(geometry: Geometry, settings: CompatibilitySettings) -> bool:
    return (
        geometry.cosine is not None
        and geometry.kept is not None
        and geometry.cosine.low >= settings.same_cosine
        and geometry.overlap.low >= settings.same_overlap
        and geometry.kept.low >= settings.found_share
    )
