"""The exact optimum of small cases, by trying every choice of corners."""

from __future__ import annotations

import itertools
import math
import operator
import random
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from services.engines.profiles.histogram import ShapeHistogram, tally

Floats = npt.NDArray[np.float64]
Price = Callable[[Sequence[int]], float]


def product_of(sizes: Sequence[int]) -> float:
    return float(math.prod(sizes))


def useful_work(histogram: ShapeHistogram, work: Price = product_of) -> float:
    return sum(item.count * work(item.sizes) for item in histogram.counts)


def least_work(
    histogram: ShapeHistogram,
    k: int,
    top: Sequence[int],
    *,
    work: Price = product_of,
    memory: Price = lambda sizes: 0.0,
    max_bytes: float = math.inf,
) -> float:
    """The least total work, padding included, of at most `k` profiles with `top` among them.

    Corners made of observed sizes are enough: any other can shrink to one without losing a request.
    """
    axes = [sorted({item.sizes[dim] for item in histogram.counts}) for dim in range(len(top))]
    corners = [corner for corner in itertools.product(*axes) if list(corner) != list(top)]
    shapes = [item.sizes for item in histogram.counts]
    weights = np.array([item.count for item in histogram.counts], float)
    reach = [
        np.array([work(corner) if all(map(operator.ge, corner, shape)) else math.inf
                  for shape in shapes])
        for corner in corners
    ]  # fmt: skip
    held = [memory(corner) for corner in corners]

    def best_from(start: int, left: int, room: float, served: Floats) -> float:
        best = float(served @ weights)
        for index in range(start, len(corners) if left else start):
            if held[index] <= room:
                beside = np.minimum(served, reach[index])
                best = min(best, best_from(index + 1, left - 1, room - held[index], beside))
        return best

    return best_from(0, k - 1, max_bytes - memory(top), np.full(len(shapes), work(top)))


def random_case(seed: int, dims: int) -> tuple[ShapeHistogram, tuple[int, ...]]:
    """A few shapes with uneven weights, and the maximum that must be covered."""
    draw = random.Random(seed)
    axes = [draw.sample(range(1, 65), 5 if dims < 3 else 3) for _ in range(dims)]
    names = [f"d{dim}" for dim in range(dims)]
    rows = []
    for _ in range(draw.randint(4, 14)):
        sizes = {name: draw.choice(axis) for name, axis in zip(names, axes, strict=True)}
        rows += [sizes] * draw.randint(1, 30)
    return tally(names, rows), tuple(max(axis) + draw.choice([0, 16]) for axis in axes)
