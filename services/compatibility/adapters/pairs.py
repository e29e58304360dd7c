"""Paired vectors of two versions, and who may learn from which of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from services.compatibility.geometry import Flags, Matrix, unit_rows
from validators.compatibility.adapters import HELD_OUT_SHARE, VALIDATION_SHARE
from validators.contracts.errors import BadInput, TooLarge

Array = npt.NDArray[Any]

MAX_ROWS = 16_384
ASKING_VIEW = 1
"""The view that asks; view 0 is the item as it is indexed, the others are only learnt from."""


@dataclass(frozen=True, slots=True)
class AdapterPairs:
    """`old` [N, D_old] and `new` [N, D_new] of one input each.

    `item` [N] says of which item, `view` [N] which view of it. Every item has view 0; where some
    have view 1, all have.
    """

    old: Array
    new: Array
    item: npt.NDArray[np.int64]
    view: npt.NDArray[np.int64]

    @staticmethod
    def of_items(old: Array, new: Array) -> AdapterPairs:
        """One view of each item: row i is item i."""
        rows = np.arange(len(old))
        return AdapterPairs(old, new, rows, np.zeros_like(rows))

    def sound(self) -> AdapterPairs:
        """Without the items of which any vector is not finite, unit rows.

        Raises:
            BadInput: arrays that do not fit each other.  TooLarge: over MAX_ROWS.
        """
        lengths = {len(self.old), len(self.new), len(self.item), len(self.view)}
        if len(lengths) != 1 or self.old.ndim != 2 or self.new.ndim != 2:
            raise BadInput(
                f"pairs of shapes {list(self.old.shape)} and {list(self.new.shape)}",
                where="pairs",
                remedy="Give matrices [N, D_old] and [N, D_new], and an item and view for each.",
            )
        if len(self.old) > MAX_ROWS:
            raise TooLarge(f"more than {MAX_ROWS} pairs", where="pairs", remedy="Take a sample.")
        finite = np.isfinite(self.old).all(1) & np.isfinite(self.new).all(1)
        kept = ~np.isin(self.item, self.item[~finite])
        return AdapterPairs(
            unit_rows(self.old[kept]), unit_rows(self.new[kept]), self.item[kept], self.view[kept]
        )

    @property
    def items(self) -> Array:
        """The distinct items, sorted."""
        return np.unique(self.item)

    def at(self, kept: Flags) -> AdapterPairs:
        return AdapterPairs(self.old[kept], self.new[kept], self.item[kept], self.view[kept])

    def of(self, view: int) -> AdapterPairs:
        """The rows of one view, in the order of items."""
        rows = np.flatnonzero(self.view == view)
        rows = rows[np.argsort(self.item[rows], kind="stable")]
        return AdapterPairs(self.old[rows], self.new[rows], self.item[rows], self.view[rows])

    def save(self, path: Path) -> None:
        np.savez(
            path, allow_pickle=False, old=self.old, new=self.new, item=self.item, view=self.view
        )

    @staticmethod
    def load(path: Path) -> AdapterPairs:
        with np.load(path, allow_pickle=False) as stored:
            return AdapterPairs(*(stored[name] for name in ("old", "new", "item", "view")))


@dataclass(frozen=True, slots=True)
class Split:
    """Sides by item, so that all views of an item stand on one."""

    fitting: AdapterPairs
    validation: AdapterPairs
    held_out: AdapterPairs


def split_pairs(pairs: AdapterPairs, seed: int = 0) -> Split:
    """Draw the held-out items, then the validation ones of the rest."""
    drawn = np.random.default_rng([seed, len(pairs.items)]).permutation(pairs.items)
    held = round(len(drawn) * HELD_OUT_SHARE)
    validation = held + round((len(drawn) - held) * VALIDATION_SHARE)
    sides = (drawn[validation:], drawn[held:validation], drawn[:held])
    return Split(*(pairs.at(np.isin(pairs.item, side)) for side in sides))


@dataclass(frozen=True, slots=True)
class Questions:
    """New vectors that ask [Q, D_new], the old index [N, D_old], and which row is theirs [Q]."""

    asking: Matrix
    asking_old: Matrix
    index: Matrix
    own: npt.NDArray[np.int64]


def questions_of(asked: AdapterPairs, indexed: AdapterPairs) -> Questions:
    """The asking view of the asked items, among the view 0 of all indexed ones."""
    asking, index = asked.of(ASKING_VIEW), indexed.of(0)
    if not len(asking.item):
        asking = asked.of(0)
    own = np.searchsorted(index.item, asking.item)
    return Questions(asking.new, asking.old, index.old, own.astype(np.int64))
