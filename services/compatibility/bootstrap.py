"""Intervals by resampling items (Efron and Tibshirani 1993, percentile method), seeded.

A bootstrap of values that are all equal gives an interval without width, however few they are; so
the interval of a share is widened to Wilson's, and says what a handful of items can say.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from validators.compatibility.estimates import NOTHING, Estimate, wilson_bounds

Array = npt.NDArray[Any]

RESAMPLES = 1000
SEED = 20_211
_BLOCK = 64


@lru_cache(maxsize=4)
def resampled_counts(items: int) -> Array:
    """How often each item is drawn, [RESAMPLES, items]; the same for the same number of items."""
    random = np.random.default_rng([SEED, items])
    counts = np.empty((RESAMPLES, items), np.uint16)
    for start in range(0, RESAMPLES, _BLOCK):
        rows = min(_BLOCK, RESAMPLES - start)
        drawn = random.integers(0, items, (rows, items)) + items * np.arange(rows)[:, None]
        counts[start : start + rows] = np.bincount(drawn.ravel(), minlength=rows * items).reshape(
            rows, items
        )
    counts.setflags(write=False)
    return counts


def percentiles(values: Array, alpha: float = 0.05) -> tuple[float, float]:
    """The central interval that leaves out `alpha`."""
    low, high = np.quantile(values, [alpha / 2, 1 - alpha / 2])
    return float(low), float(high)


def estimate_share(values: Array) -> Estimate:
    """The mean of values within 0..1, one per item: hits, or shares."""
    if len(values) == 0:
        return NOTHING
    mean = float(np.clip(values.mean(), 0, 1))
    low, high = percentiles(_means(values))
    wilson_low, wilson_high = wilson_bounds(mean, len(values))
    return Estimate(mean, min(low, wilson_low), max(high, wilson_high), len(values))


def estimate_mean(values: Array, alpha: float = 0.05) -> Estimate:
    """The mean of any values, one per item."""
    if len(values) == 0:
        return NOTHING
    low, high = percentiles(_means(values), alpha)
    mean = float(values.mean())
    return Estimate(mean, min(low, mean), max(high, mean), len(values))


def _means(values: Array) -> Array:
    return np.asarray(resampled_counts(len(values)) @ values.astype(np.float64) / len(values))
