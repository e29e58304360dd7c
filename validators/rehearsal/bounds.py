"""Bounds that need no assumption about the distribution.

A quantile is bounded by order statistics: the k-th smallest of n is at or above the q-quantile
with probability P(Binomial(n, q) <= k - 1). (David and Nagaraja, "Order Statistics", 3rd ed., 2003,
section 7.1.) A share is bounded by Clopper and Pearson's interval (Biometrika 26, 1934).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.stats import beta, binom

CONFIDENCE = 0.95


def minimum_for_upper_bound(quantile: float, confidence: float = CONFIDENCE) -> int:
    """The fewest values whose largest bounds the quantile from above: 299 for a P99 at 95 %."""
    return math.ceil(math.log(1 - confidence) / math.log(quantile))


def quantile_of(values: Sequence[float], quantile: float) -> float:
    """The empirical quantile: the least value with at least that share at or below it."""
    ranked = sorted(values)
    return ranked[max(math.ceil(quantile * len(ranked)) - 1, 0)]


def quantile_upper(
    values: Sequence[float], quantile: float, confidence: float = CONFIDENCE
) -> float | None:
    """The one-sided upper bound of a quantile, or None with too few values to have one."""
    count = len(values)
    if count < minimum_for_upper_bound(quantile, confidence):
        return None
    rank = int(binom.ppf(confidence, count, quantile)) + 1
    return sorted(values)[min(rank, count) - 1]


def quantile_lower(
    values: Sequence[float], quantile: float, confidence: float = CONFIDENCE
) -> float | None:
    """The one-sided lower bound of a quantile, or None with too few values to have one."""
    rank = int(binom.ppf(1 - confidence, len(values), quantile))
    return sorted(values)[rank - 1] if rank >= 1 else None


def share_bounds(bad: int, total: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """One-sided lower and upper bounds of a share, each at `confidence`."""
    lower = float(beta.ppf(1 - confidence, bad, total - bad + 1)) if bad else 0.0
    upper = float(beta.ppf(confidence, bad + 1, total - bad)) if bad < total else 1.0
    return lower, upper
