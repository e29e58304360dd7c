"""When is one thing faster than another, beyond the noise of the machine? Pure.

Rounds are paired: round i of both sides ran side by side. The exact sign test asks how many pairs
agree; its inversion gives an interval of the median ratio from the sorted ratios themselves
(Hollander, Wolfe & Chicken 2014, section 3.4 to 3.6). Nothing is assumed of the noise but that
it takes either side alike, and how long a stall was does not matter: one round is one vote. Four
rounds can never say "faster" at this level; five can when all agree, eight when seven do.
"""

from __future__ import annotations

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
    ratios = sorted(a / b for a, b in zip(ours_ms, theirs_ms, strict=False))
    if not ratios:
        return Comparison(1.0, 0.0, math.inf)
    middle = math.sqrt(statistics.median_low(ratios) * statistics.median_high(ratios))
    skipped = _skipped(len(ratios), level)
    if skipped < 0:
        return Comparison(middle, 0.0, math.inf)
    return Comparison(middle, ratios[skipped], ratios[-1 - skipped])


def _skipped(pairs: int, level: float) -> int:
    """How many ratios at either end lie outside the interval; below 0: there is no interval."""
    tail = 0
    for skipped in range(pairs + 1):
        tail += math.comb(pairs, skipped)
        if tail > level * 2**pairs:
            return skipped - 1
    return pairs
