"""Many tests at once: which fall when all of them together may alarm no more than a rate says."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy import stats


def rejected(p_values: Sequence[float], rate: float) -> list[bool]:
    """Which hypotheses fall, by Benjamini and Yekutieli (2001): the tests may depend on each other.

    Where nothing changed, the chance of any rejection is at most `rate`.
    """
    if not p_values:
        return []
    adjusted = stats.false_discovery_control(list(p_values), method="by")
    return [bool(value <= rate) for value in adjusted]


def permutations_for(tests: int, rate: float) -> int:
    """Enough permutations for the smallest p-value to lie at half the strictest limit."""
    strictest = rate / (tests * sum(1 / number for number in range(1, tests + 1)))
    return max(199, math.ceil(2 / strictest) - 1)
