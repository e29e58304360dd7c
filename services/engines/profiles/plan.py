"""Plan profiles: at most k of them, with the least expected padded work for recorded shapes.

The largest profile is the bounds' own maximum, so that nothing within the bounds is ever outside
every profile. The result holds what it expects, and whether it is proven to be the best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from services.engines.profiles.bounds import DimBound, shape_profile
from services.engines.profiles.cost import Amounts, MemoryModel, ShapeFormula, Sizes, linear_work
from services.engines.profiles.exact import Line, best_cuts, best_cuts_within
from services.engines.profiles.histogram import ShapeHistogram, round_up
from services.engines.profiles.search import Field, search_corners
from validators.contracts.engine import ShapeProfile
from validators.contracts.errors import BadInput, TooLarge
from validators.contracts.tensors import TensorSpec

MAX_PROFILES = 32


@dataclass(frozen=True, slots=True)
class PlannedProfile:
    """One profile: sizes in the order of the plan's bounds.

    Requests are padded to `maximum`; `optimum` is the observed shape, among those it serves, that
    most of its useful work is for.
    """

    minimum: tuple[int, ...]
    optimum: tuple[int, ...]
    maximum: tuple[int, ...]
    requests: int
    padded_work: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class ProfilePlan:
    """Profiles by ascending work (the first that covers a request serves it at the least), and
    what they would have cost over the recorded requests.

    `proven` says that no other choice of as many profiles within the memory costs less. `outside`
    counts recorded requests beyond the bounds: they were not planned for.
    """

    bounds: tuple[DimBound, ...]
    profiles: tuple[PlannedProfile, ...]
    requests: int
    outside: int
    useful_work: float
    padded_work: float
    memory_bytes: int
    proven: bool

    @property
    def padding_share(self) -> float:
        """Padded work over useful work; 0 where nothing was recorded."""
        return self.padded_work / self.useful_work if self.useful_work else 0.0

    def shape_profiles(self, inputs: Sequence[TensorSpec]) -> tuple[ShapeProfile, ...]:
        """The profiles as an engine spec takes them, in the plan's order."""
        return tuple(
            shape_profile(
                inputs,
                self.named(item.minimum), self.named(item.optimum), self.named(item.maximum),
            )
            for item in self.profiles
        )  # fmt: skip

    def named(self, sizes: Sequence[int]) -> dict[str, int]:
        """Sizes by the name of their dimension."""
        return {bound.name: size for bound, size in zip(self.bounds, sizes, strict=True)}


def plan_profiles(
    histogram: ShapeHistogram,
    k: int,
    *,
    bounds: Sequence[DimBound],
    work: ShapeFormula | None = None,
    memory: MemoryModel | None = None,
    max_bytes: int | None = None,
) -> ProfilePlan:
    """At most `k` profiles for the recorded shapes; the same input gives the same plan.

    `work` is linear in every dimension unless given; `max_bytes` bounds the sum of the profiles'
    memory. One dimension is solved exactly (`exact`), several well (`search`).

    Raises:
        BadInput: bounds of other dimensions than the histogram's, `k` out of range, or a bound on
            memory without a model of it.  TooLarge: the largest profile alone is over the bound.
    """
    _check(histogram, k, bounds, memory, max_bytes)
    field, ordered, outside = _field(histogram, bounds, work, memory, max_bytes)
    _check_top(field, ordered)
    corners, proven = _choose(field, k)
    return _described(field, corners, ordered, outside, proven=proven)


def padding_of(
    histogram: ShapeHistogram,
    profiles: Sequence[Sequence[int]],
    *,
    bounds: Sequence[DimBound],
    work: ShapeFormula | None = None,
    memory: MemoryModel | None = None,
) -> ProfilePlan:
    """What given profiles (their largest sizes, in the histogram's order) cost for these shapes.

    For comparing a plan with other choices, or with requests it was not made for.

    Raises:
        BadInput: none of the profiles covers the bounds.
    """
    _check(histogram, 1, bounds, None, None)
    field, ordered, outside = _field(histogram, bounds, work, memory, None)
    if field.top not in {tuple(sizes) for sizes in profiles}:
        raise BadInput(f"no profile covers {field.top}", remedy="Add one at the bounds' maximum.")
    return _described(field, np.array(profiles, np.int64), ordered, outside, proven=False)


def _field(
    histogram: ShapeHistogram,
    bounds: Sequence[DimBound],
    work: ShapeFormula | None,
    memory: MemoryModel | None,
    max_bytes: int | None,
) -> tuple[Field, tuple[DimBound, ...], int]:
    """The problem in arrays, the bounds in the histogram's order, and the requests beyond them."""
    names = histogram.dims
    by_name = {bound.name: bound for bound in bounds}
    ordered = tuple(by_name[name] for name in names)
    formula = work or linear_work(names)
    shapes, weights, outside = _within(histogram, ordered)
    field = Field(
        shapes,
        weights,
        tuple(bound.maximum for bound in ordered),
        lambda sizes: formula.over(names, sizes),
        lambda sizes: memory.over(names, sizes) if memory else np.zeros(len(sizes)),
        math.inf if max_bytes is None else float(max_bytes),
    )
    return field, ordered, outside


def _within(histogram: ShapeHistogram, bounds: Sequence[DimBound]) -> tuple[Sizes, Amounts, int]:
    """The shapes within the bounds, and how many requests were beyond them.

    A size that was rounded up beyond the maximum may have been within: it counts as the maximum.
    """
    top = tuple(bound.maximum for bound in bounds)
    reach = [round_up(size, histogram.level) for size in top]
    counts: dict[tuple[int, ...], int] = {}
    outside = 0
    for item in histogram.counts:
        if any(size > most for size, most in zip(item.sizes, reach, strict=True)):
            outside += item.count
            continue
        key = tuple(min(max(size, bound.minimum), bound.maximum)
                    for size, bound in zip(item.sizes, bounds, strict=True))  # fmt: skip
        counts[key] = counts.get(key, 0) + item.count
    shapes = np.array(sorted(counts) or [top], np.int64)
    weights = np.array([counts[key] for key in sorted(counts)] or [0], np.float64)
    return shapes, weights, outside


def _choose(field: Field, k: int) -> tuple[Sizes, bool]:
    top = np.array([field.top], np.int64)
    if k == 1 or not field.weights.any():
        return top, True
    if field.shapes.shape[1] > 1:
        return search_corners(field, k), False
    sizes = np.unique(np.append(field.shapes[:, 0], field.top[0]))
    weights = np.zeros(len(sizes))
    weights[np.searchsorted(sizes, field.shapes[:, 0])] = field.weights
    column = sizes[:, None]
    line = Line(weights, field.work(column), field.memory(column))
    free = column[list(best_cuts(line, k))]
    if field.bytes(free) <= field.max_bytes:
        return free, True
    bounded = best_cuts_within(line, k, field.max_bytes)
    if bounded is None:
        return top, True
    found = column[list(bounded.cuts)]
    if bounded.proven:
        return found, True
    return min(found, search_corners(field, k), key=field.cost), False


def _described(
    field: Field, corners: Sizes, bounds: Sequence[DimBound], outside: int, *, proven: bool
) -> ProfilePlan:
    work = field.work(corners)
    order = np.lexsort((*corners.T[::-1], work))
    corners, work = corners[order], work[order]
    serving = field.reach(corners).argmin(axis=0)
    useful = field.weights * field.work(field.shapes)
    padded = field.weights * work[serving] - useful
    minimum = tuple(bound.minimum for bound in bounds)
    profiles = []
    for index, (corner, size_bytes) in enumerate(zip(corners, field.memory(corners), strict=True)):
        mine = (serving == index) & (field.weights > 0)
        maximum = tuple(int(size) for size in corner)
        busiest = field.shapes[int(np.argmax(np.where(mine, useful, -1.0)))]
        optimum = tuple(int(size) for size in busiest) if mine.any() else maximum
        profiles.append(
            PlannedProfile(
                minimum, optimum, maximum,
                int(field.weights[mine].sum()), float(padded[mine].sum()), int(size_bytes),
            )
        )  # fmt: skip
    return ProfilePlan(
        tuple(bounds),
        tuple(profiles),
        int(field.weights.sum()),
        outside,
        float(useful.sum()),
        float(padded.sum()),
        int(field.bytes(corners)),
        proven,
    )


def _check(
    histogram: ShapeHistogram,
    k: int,
    bounds: Sequence[DimBound],
    memory: MemoryModel | None,
    max_bytes: int | None,
) -> None:
    if sorted(bound.name for bound in bounds) != sorted(histogram.dims):
        raise BadInput(
            "the bounds are of other dimensions than the histogram",
            where=", ".join(bound.name for bound in bounds),
            remedy="Bound each of: " + ", ".join(histogram.dims) + ".",
        )
    if not 1 <= k <= MAX_PROFILES:
        raise BadInput(f"{k} profiles cannot be planned", remedy=f"Ask for 1 to {MAX_PROFILES}.")
    if max_bytes is not None and memory is None:
        raise BadInput(
            "a bound on memory needs a model of what a profile holds",
            remedy="Give the bytes per element of the encoder's profiles.",
        )


def _check_top(field: Field, bounds: Sequence[DimBound]) -> None:
    needed = field.bytes(np.array([field.top], np.int64))
    if needed > field.max_bytes:
        raise TooLarge(
            f"the largest profile alone takes {needed:.0f} bytes, over {field.max_bytes:.0f}",
            where=", ".join(f"{bound.name} {bound.maximum}" for bound in bounds),
            remedy="Lower the declared maximum, or raise the bound on memory.",
        )
