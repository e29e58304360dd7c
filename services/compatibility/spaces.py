"""Two versions' embeddings of the same items, measured as one `Geometry`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from services.compatibility.bootstrap import estimate_mean, estimate_share
from services.compatibility.geometry import (
    Flags,
    Found,
    find_own,
    fit_ridge_map,
    measure_spread,
    neighbour_overlap,
    neighbours_of,
    paired_cosines,
    rank_correlation,
    unit_rows,
)
from validators.compatibility.estimates import NOTHING, Estimate
from validators.compatibility.measured import Geometry, Retrieval

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Cloud:
    """One version's vectors: `indexed` [N, D] of each item, `asking` [N, D] of its second view.

    Without second views both are the same array, and an item asks for itself.
    """

    indexed: Array
    asking: Array

    @property
    def views(self) -> int:
        return 1 if self.asking is self.indexed else 2

    def finite(self) -> Flags:
        """[N]: whether all vectors of the item are."""
        return np.asarray(np.isfinite(self.indexed).all(1) & np.isfinite(self.asking).all(1))

    def at(self, kept: Flags) -> Cloud:
        indexed = self.indexed[kept].astype(np.float64)
        one = self.views == 1
        return Cloud(indexed, indexed if one else self.asking[kept].astype(np.float64))


@dataclass(frozen=True, slots=True)
class Embedding:
    """What is compared: the output's name, and whether the contracts name one space."""

    output: str
    same_space: bool


def measure_geometry(
    embedding: Embedding, old: Cloud, new: Cloud, *, repeated: Flags | None = None
) -> Geometry:
    """Compare the two clouds, row i of all arrays being item i.

    `repeated` [N] marks items whose input came before: they are counted and left out, since they
    would tie with themselves. So are items on which a version is not finite.
    """
    repeats = np.zeros(len(old.indexed), bool) if repeated is None else repeated
    sound_old, sound_new = old.finite(), new.finite()
    kept = sound_old & sound_new & ~repeats
    before, after = old.at(kept), new.at(kept)
    items, k = len(before.indexed), neighbours_of(max(int(kept.sum()), 1))
    found = _retrieve(before, after, k)
    base = found["old", "old"].first
    mixed = found.get(("new", "old"))
    held = _through_a_map(before, after, k) if items >= 4 else None
    cosine = held.cosine if held else 0.0
    same_dim = before.indexed.shape[1] == after.indexed.shape[1]
    return Geometry(
        output=embedding.output,
        same_space=embedding.same_space,
        old_dim=before.indexed.shape[1],
        new_dim=after.indexed.shape[1],
        items=items,
        duplicates=int(repeats.sum()),
        left_out_old=int((~sound_old & ~repeats).sum()),
        left_out_new=int((~sound_new & ~repeats).sum()),
        views=before.views,
        neighbours=k,
        cosine=estimate_mean(paired_cosines(before.indexed, after.indexed)) if same_dim else None,
        rank_correlation=rank_correlation(before.indexed, after.indexed),
        overlap=estimate_share(neighbour_overlap(before.indexed, after.indexed, k)),
        retrievals=_retrievals(found),
        flips_mixed=_flips(base, mixed.first) if mixed else None,
        flips_reindexed=_flips(base, found["new", "new"].first),
        kept=estimate_share(mixed.first[base]) if mixed else None,
        adapted=estimate_share(held.found.first[base]) if held else NOTHING,
        adapted_cosine=cosine,
        new_spread=measure_spread(after.indexed),
    )


def repeated_inputs(names: Sequence[Hashable]) -> Flags:
    """[N]: whether an equal name came before."""
    first = {name: row for row, name in reversed(list(enumerate(names)))}
    return np.array([first[name] != row for row, name in enumerate(names)], np.bool_)


def _retrieve(old: Cloud, new: Cloud, k: int) -> dict[tuple[str, str], Found]:
    clouds = {"old": old, "new": new}
    return {
        (queries, index): find_own(clouds[queries].asking, clouds[index].indexed, k)
        for queries, index in product(clouds, clouds)
        if clouds[queries].asking.shape[1] == clouds[index].indexed.shape[1]
    }


def _retrievals(found: dict[tuple[str, str], Found]) -> tuple[Retrieval, ...]:
    return tuple(
        Retrieval(*pair, estimate_share(item.first), estimate_share(item.within))
        for pair, item in found.items()
    )


def _flips(before: Flags, after: Flags) -> Estimate:
    return estimate_share(before & ~after)


@dataclass(frozen=True, slots=True)
class _Mapped:
    found: Found
    cosine: float


def _through_a_map(old: Cloud, new: Cloud, k: int) -> _Mapped:
    """New queries by a map that never saw their item, looking among all old vectors."""
    target, source = unit_rows(old.indexed), unit_rows(new.indexed)
    asking = unit_rows(new.asking)
    mapped, paired = np.empty_like(target), np.empty_like(target)
    even, odd = slice(0, None, 2), slice(1, None, 2)
    for here, there in ((even, odd), (odd, even)):
        fitted = fit_ridge_map(source[here], target[here])
        mapped[there], paired[there] = fitted(asking[there]), fitted(source[there])
    return _Mapped(find_own(mapped, target, k), float(paired_cosines(paired, target).mean()))
