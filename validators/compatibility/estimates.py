"""A measured share or mean with its uncertainty: gates judge the bounds, never the value alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

Z_95 = 1.959963984540054
"""Two-sided 95 % quantile of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value over `count` items. `low` and `high` are a two-sided 95 % interval."""

    value: float
    low: float
    high: float
    count: int

    def describe(self) -> str:
        """For messages: `0.93 (0.86 to 0.97)`."""
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


NOTHING = Estimate(0.0, 0.0, 1.0, 0)
"""A share of nothing: it may be anything."""


def wilson_bounds(share: float, total: int) -> tuple[float, float]:
    """Wilson's 95 % score interval of a share (JASA 22, 1927); everything where nothing was seen.

    It also holds, more widely than needed, for the mean of values within 0..1: their variance is at
    most that of zeros and ones with the same mean.
    """
    if total == 0:
        return 0.0, 1.0
    square = Z_95**2
    centre = share + square / (2 * total)
    margin = Z_95 * math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    low, high = ((centre + side * margin) / (1 + square / total) for side in (-1, 1))
    return max(0.0, min(low, share)), min(1.0, max(high, share))


def share_of(hits: int, total: int) -> Estimate:
    """A counted share with Wilson's interval."""
    if total == 0:
        return NOTHING
    return Estimate(hits / total, *wilson_bounds(hits / total, total), total)
