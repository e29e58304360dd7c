"""Profiles at powers of two: what engines are usually given, for comparison with a plan."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from services.engines.profiles.bounds import DimBound

Corners = list[tuple[int, ...]]


def ladders(bounds: Sequence[DimBound], k: int) -> Iterator[Corners]:
    """Grids of powers of two below the maxima, one for each way to share out at most k corners."""
    longest = [bound.maximum.bit_length() for bound in bounds]
    for rungs in itertools.product(*(range(1, min(k, most) + 1) for most in longest)):
        if math.prod(rungs) <= k:
            yield list(
                itertools.product(
                    *([max(1, bound.maximum >> step) for step in range(count)]
                      for bound, count in zip(bounds, rungs, strict=True))
                )
            )  # fmt: skip
