"""Good profiles over several dimensions: greedy choice, exchange, and polishing.

Choosing k profiles is a facility location problem whose saving over one profile alone is
submodular: a greedy choice has at least 1 - 1/e of the best saving (Nemhauser, Wolsey, Fisher
1978), and under a bound on memory the better of greedy by saving and greedy by saving per byte has
half of that (Leskovec et al. 2007). Each step is followed by exchanges of one profile, then of
two, until none helps. The choice for k starts from the one for k - 1, so more profiles never cost
more. How far this is from the optimum on small cases is measured by the tests, beside an
exhaustive solver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from services.engines.profiles.cost import Amounts, Sizes

MAX_CELLS = 1 << 20
"""Candidates times shapes that are held at once: 8 MiB."""
_ROUNDS = 20
_PAIR_ROUNDS = 4
_PAIR_WORK = 1 << 25
"""Prices that one round of exchanging pairs may look at: about a tenth of a second."""
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Field:
    """Several dimensions: observed shapes with weights, the shape that must be covered, prices."""

    shapes: Sizes  # [n, dims]
    weights: Amounts  # [n]
    top: tuple[int, ...]
    work: Callable[[Sizes], Amounts]
    memory: Callable[[Sizes], Amounts]
    max_bytes: float

    def reach(self, corners: Sizes) -> Amounts:
        """[corners, n]: the work of serving each shape at each corner, infinite if not covered."""
        covered = np.ones((len(corners), len(self.shapes)), bool)
        for dim in range(self.shapes.shape[1]):
            covered &= corners[:, dim, None] >= self.shapes[None, :, dim]
        reached: Amounts = np.where(covered, self.work(corners)[:, None], np.inf)
        return reached

    def cost(self, corners: Sizes) -> float:
        return float(self.weights @ self.reach(corners).min(axis=0))

    def bytes(self, corners: Sizes) -> float:
        return float(self.memory(corners).sum())


def search_corners(field: Field, k: int) -> Sizes:
    """At most `k` corners, `field.top` among them, of little total work; [profiles, dims]."""
    grid = _Grid(field, _candidates(field))
    found = [_climb(grid, k, per_byte=False)]
    if np.isfinite(field.max_bytes):
        found.append(_climb(grid, k, per_byte=True))
    return min(found, key=field.cost)


def _candidates(field: Field) -> Sizes:
    """Corners made of observed sizes; of quantiles of them where there would be too many."""
    most = max(16, MAX_CELLS // len(field.shapes))
    axes = [np.unique(np.append(column, top))
            for column, top in zip(field.shapes.T, field.top, strict=True)]  # fmt: skip
    while np.prod([len(axis) for axis in axes], dtype=np.float64) > most:
        widest = max(range(len(axes)), key=lambda dim: len(axes[dim]))
        axes[widest] = _thinned(axes[widest], field, widest)
    return np.array(list(product(*(axis.tolist() for axis in axes))), np.int64)


def _thinned(axis: Sizes, field: Field, dim: int) -> Sizes:
    """Three quarters of the sizes, at even steps of the requests' weight; the largest stays."""
    keep = max(1, len(axis) * 3 // 4)
    order = np.argsort(field.shapes[:, dim], kind="stable")
    share = np.cumsum(field.weights[order]) / field.weights.sum()
    at = np.searchsorted(share, np.arange(1, keep + 1) / keep - _TINY)
    sizes = field.shapes[order[np.minimum(at, len(order) - 1)], dim]
    kept = axis[np.searchsorted(axis, sizes)]
    thinned: Sizes = np.unique(np.append(kept, axis[-1]))
    return thinned


class _Grid:
    """The candidates with their prices, computed once."""

    def __init__(self, field: Field, corners: Sizes) -> None:
        self.field = field
        self.corners = corners
        self.reach = field.reach(corners)
        self.memory = field.memory(corners)

    def best_addition(self, base: Amounts, room: float, *, per_byte: bool) -> int | None:
        """The candidate that saves most beside profiles that reach `base`; None if none does."""
        saving = self._saving(base, room)
        if per_byte:
            saving = np.where(saving > 0, saving / self.memory, saving)
        choice = int(np.argmax(saving))
        return choice if saving[choice] > _TINY * float(base @ self.field.weights) else None

    def good_additions(self, base: Amounts, room: float, most: int) -> list[int]:
        """At most `most` candidates that save something, the best first."""
        saving = self._saving(base, room)
        order = np.argsort(-saving, kind="stable")[:most]
        return [int(index) for index in order if saving[index] > 0]

    def _saving(self, base: Amounts, room: float) -> Amounts:
        kept = np.minimum(base, self.reach) @ self.field.weights
        saving: Amounts = np.where(self.memory <= room, base @ self.field.weights - kept, -np.inf)
        return saving


def _climb(grid: _Grid, k: int, *, per_byte: bool) -> Sizes:
    field = grid.field
    corners = np.array([field.top], np.int64)
    for most in range(2, k + 1):
        before = len(corners), field.cost(corners)
        room = field.max_bytes - field.bytes(corners)
        addition = grid.best_addition(field.reach(corners).min(axis=0), room, per_byte=per_byte)
        if addition is not None:
            corners = _settled(grid, np.vstack([corners, grid.corners[addition]]))
        corners = _pairs_settled(grid, corners, most)
        if before == (len(corners), field.cost(corners)):
            break  # nothing is left to save, or nothing more fits
    return corners


def _settled(grid: _Grid, corners: Sizes) -> Sizes:
    """Exchange and polish one profile after the other until nothing gets cheaper."""
    cost = grid.field.cost(corners)
    for _ in range(_ROUNDS):
        for index in range(1, len(corners)):  # 0 is the top, which stays
            corners = _exchanged(grid, corners, index)
            corners = _polished(grid.field, corners, index)
        settled = grid.field.cost(corners)
        if settled >= cost * (1 - _TINY):
            break
        cost = settled
    return corners


def _exchanged(grid: _Grid, corners: Sizes, index: int) -> Sizes:
    others = np.delete(corners, index, axis=0)
    room = grid.field.max_bytes - grid.field.bytes(others)
    base = grid.field.reach(others).min(axis=0)
    choice = grid.best_addition(base, room, per_byte=False)
    if choice is None:
        return corners
    changed = corners.copy()
    changed[index] = grid.corners[choice]
    return changed if grid.field.cost(changed) < grid.field.cost(corners) else corners


def _pairs_settled(grid: _Grid, corners: Sizes, most: int) -> Sizes:
    for _ in range(_PAIR_ROUNDS):
        changed = _pair_exchanged(grid, corners, most)
        if changed is None:
            break
        corners = _settled(grid, changed)
    return corners


def _pair_exchanged(grid: _Grid, corners: Sizes, k: int) -> Sizes | None:
    """The best replacement of two profiles (or of one, where there is room for one more) by two."""
    inner = range(1, len(corners))
    leaving: list[tuple[int, ...]] = list(combinations(inner, 2))
    leaving += [(index,) for index in inner] if len(corners) < k else []
    most = _PAIR_WORK // max(1, grid.reach.size * len(leaving))
    least = grid.field.cost(corners) * (1 - _TINY)
    best = None
    for gone in leaving:
        others = np.delete(corners, gone, axis=0)
        for pair in _pairs_beside(grid, others, max(2, most)):
            changed = np.vstack([others, grid.corners[pair]])
            cost = grid.field.cost(changed)
            if cost < least:
                least, best = cost, changed
    return best


def _pairs_beside(grid: _Grid, others: Sizes, most: int) -> Iterator[list[int]]:
    """A good first addition beside these profiles, and the best second one beside it."""
    room = grid.field.max_bytes - grid.field.bytes(others)
    base = grid.field.reach(others).min(axis=0)
    for first in grid.good_additions(base, room, most):
        second = grid.best_addition(
            np.minimum(base, grid.reach[first]), room - grid.memory[first], per_byte=False
        )
        yield [first] if second is None else [first, second]


def _polished(field: Field, corners: Sizes, index: int) -> Sizes:
    """Move one profile along one dimension at a time, over every observed size."""
    for dim in range(corners.shape[1]):
        sizes = np.unique(np.append(field.shapes[:, dim], field.top[dim]))
        others = np.delete(corners, index, axis=0)
        base = field.reach(others).min(axis=0)
        moved = np.repeat(corners[index][None, :], len(sizes), axis=0)
        moved[:, dim] = sizes
        fits = field.memory(moved) <= field.max_bytes - field.bytes(others)
        costs = np.minimum(base, field.reach(moved)) @ field.weights
        costs = np.where(fits, costs, np.inf)
        if costs.min() < field.cost(corners) * (1 - _TINY):
            corners = corners.copy()
            corners[index] = moved[int(np.argmin(costs))]
    return corners
