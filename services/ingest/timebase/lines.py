"""A straight line through points of which some are wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

LEVEL = 0.95
LEAST_POINTS = 3


@dataclass(frozen=True, slots=True)
class Line:
    """`slope` with its interval of 95 %, and `offset` at x = 0."""

    slope: float
    offset: float
    low: float
    high: float


def fit_line(x: npt.ArrayLike, y: npt.ArrayLike) -> Line | None:
    """The median slope of all pairs of points (Theil, 1950; Sen, 1968); None where it has none.

    Points at one x are taken together by the median of their y: they say nothing of a slope.
    """
    places, heights = np.asarray(x, np.float64), np.asarray(y, np.float64)
    distinct = np.unique(places)
    if len(distinct) < LEAST_POINTS:
        return None
    middles = np.array([np.median(heights[places == place]) for place in distinct])
    found = [float(item) for item in stats.theilslopes(middles, distinct, alpha=LEVEL)]
    return Line(*found) if np.isfinite(found).all() else None
