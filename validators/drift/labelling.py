"""Who was in which window, as the permutation tests draw it again and again.

What moves between the windows as one is a unit: a row, or all rows of one recording, or a block of
neighbours in time where neighbours are alike. Units keep their number in each window, so that under
"nothing has changed" every drawing is as likely as the one that was observed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.intp]

_CHUNK_CELLS = 8_000_000  # memberships drawn at once


@dataclass(frozen=True, slots=True)
class Units:
    """`unit` [n] of each pooled row, 0 .. reference + current - 1, the reference's units first."""

    unit: Ints
    reference: int
    current: int

    @staticmethod
    def of_rows(reference: int, current: int) -> Units:
        """Every row on its own."""
        return Units(np.arange(reference + current), reference, current)

    @staticmethod
    def of(reference: npt.NDArray[np.int_], current: npt.NDArray[np.int_]) -> Units:
        """From the unit of each row, in the numbers of its own window."""
        first, one = np.unique(reference, return_inverse=True)
        second, other = np.unique(current, return_inverse=True)
        return Units(np.concatenate([one, other + len(first)]), len(first), len(second))

    @property
    def rows(self) -> int:
        return len(self.unit)

    @property
    def single(self) -> bool:
        """Whether every row is a unit of its own."""
        return self.reference + self.current == len(self.unit)

    def within(self, rows: Ints) -> Units:
        """The units of some of the rows (a slice), renumbered; the order of rows stays."""
        chosen, numbers = np.unique(self.unit[rows], return_inverse=True)
        first = int(np.count_nonzero(chosen < self.reference))
        return Units(numbers, first, len(chosen) - first)


def draw_memberships(units: Units, count: int, seed: int) -> Floats:
    """[count + 1, rows]: 1 where a row is in the current window. The first row is as observed."""
    total = units.reference + units.current
    drawn = np.zeros((count + 1, total), np.float32)
    drawn[0, units.reference :] = 1
    generator = np.random.default_rng(seed)
    step = max(1, _CHUNK_CELLS // max(total, 1))
    if units.current and units.reference:
        for start in range(1, count + 1, step):
            rows = min(step, count + 1 - start)
            keys = generator.random((rows, total), np.float32)
            chosen = np.argpartition(keys, units.current - 1, axis=1)[:, : units.current]
            np.put_along_axis(drawn[start : start + rows], chosen, 1, axis=1)
    return drawn if units.single else np.ascontiguousarray(drawn[:, units.unit])
