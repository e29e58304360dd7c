"""When is one thing faster than another, beyond the noise of the machine? Pure.

Rounds are paired: round i of both sides ran side by side. The log ratios of the pairs are compared
with zero by the exact Wilcoxon signed-rank test; its inversion gives an interval of the ratio, and
the Hodges-Lehmann estimate its middle (Hollander, Wolfe & Chicken 2014, chapter 3). No shape of the
noise is assumed beyond symmetry, so one stalled round cannot decide. Four rounds can never say
"faster" at this level; five can, when all five agree.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.04
"""Chance, at most, that noise alone makes one of two equal sides look faster (one-sided)."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Time of one side over time of the other, below 1 where it is faster, with its interval."""

    ratio: float
    low: float
    high: float

    @property
    def faster(self) -> bool:
        return self.high < 1.0

    @property
    def slower(self) -> bool:
        return self.low > 1.0


def compare_rounds(
    ours_ms: Sequence[float], theirs_ms: Sequence[float], level: float = LEVEL
) -> Comparison:
    """How long we take over how long they take, from paired rounds of positive times.

    Rounds without a partner are left out. Too few pairs for the level give an interval without
    bounds: nothing can be said.
    """
    gaps = [math.log(a / b) for a, b in zip(ours_ms, theirs_ms, strict=False)]
    if not gaps:
        return Comparison(1.0, 0.0, math.inf)
    walsh = sorted((a + b) / 2 for at, a in enumerate(gaps) for b in gaps[at:])
    ratio = math.exp(statistics.median(walsh))
    skip = _skipped(len(gaps), level)
    if skip is None:
        return Comparison(ratio, 0.0, math.inf)
    return Comparison(ratio, math.exp(walsh[skip]), math.exp(walsh[-1 - skip]))


@functools.cache
def _skipped(pairs: int, level: float) -> int | None:
    """How many Walsh averages at either end lie outside the interval; None: no such interval.

    The count of subsets of 1..n with each sum is the null distribution of the signed-rank sum.
    """
    counts = [1]
    for rank in range(1, pairs + 1):
        longer = counts + [0] * rank
        for at, count in enumerate(counts):
            longer[at + rank] += count
        counts = longer
    tail, total = 0, 2**pairs
    for skipped, count in enumerate(counts):
        tail += count
        if tail / total > level:
            return skipped - 1 if skipped else None
    return None
