"""How much happens on a track from moment to moment: what two tracks of one scene share.

A frame's activity is how much it differs from the one before, a recording's how much louder it has
become, a sensor's how much its reading has moved. Which of them rose is all that counts, so each
course is put on its own robust scale before two are compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import ndimage

BIN_NS = 10_000_000
"""The grid on which courses are compared: 10 ms."""
QUIET_NS = 200_000_000
"""A beginning is louder than this long before it."""
_LOCAL_BINS = 101
_CEILING = 8.0
_SMOOTH_BINS = 1.5

Course = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Activity:
    """`values` [N] at `times_ns` [N], in order of time; not on any scale."""

    times_ns: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


def on_grid(activity: Activity, start_ns: int, bins: int) -> Course:
    """The activity at every BIN_NS from `start_ns`, on its robust scale.

    Linear between its moments, less the local median, over the course's own spread, without what is
    below the median, capped so that one bang does not outweigh the rest.
    """
    grid = start_ns + BIN_NS * np.arange(bins, dtype=np.int64)
    if not len(activity.times_ns):
        return np.zeros(bins)
    inside = np.interp(grid, activity.times_ns, activity.values, left=np.nan, right=np.nan)
    known = np.isfinite(inside)
    if not known.any():
        return np.zeros(bins)
    filled = np.where(known, inside, np.median(inside[known]))
    raised = np.maximum(filled - ndimage.median_filter(filled, _LOCAL_BINS, mode="nearest"), 0)
    spread = _spread(raised[known])
    if spread == 0:
        return np.zeros(bins)
    capped = np.minimum(raised / spread, _CEILING)
    capped[~known] = 0
    return np.asarray(ndimage.gaussian_filter1d(capped, _SMOOTH_BINS, mode="constant"), np.float64)


def _spread(raised: Course) -> float:
    """The mean of what is raised at all: sparse courses have a median of zero."""
    positive = raised[raised > 1e-12 * max(float(raised.max()), 1e-300)]
    return float(positive.mean()) if len(positive) else 0.0


def motion(previous: npt.NDArray[np.uint8] | None, frame: npt.NDArray[np.uint8]) -> float:
    """Mean absolute difference of two small grey frames; 0 for the first one."""
    if previous is None or previous.shape != frame.shape:
        return 0.0
    return float(np.abs(frame.astype(np.int16) - previous).mean())


def rise(
    levels: npt.NDArray[np.float64], times_ns: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """How much each level is above all of the QUIET_NS before it; 0 where it is not.

    It is the beginning of what happens that is the same on every track. How it dies away is not,
    and neither is its end: a picture that changes and changes back moves twice.
    """
    if not len(levels):
        return levels
    spacing = max(1, int(np.median(np.diff(times_ns)))) if len(times_ns) > 1 else QUIET_NS
    reach = max(1, round(QUIET_NS / spacing))
    padded = np.concatenate([np.full(reach, levels[0]), levels])
    before = ndimage.maximum_filter1d(padded, reach, origin=(reach - 1) // 2)[reach - 1 : -1]
    risen: npt.NDArray[np.float64] = np.maximum(levels - before, 0.0)
    return risen


def movement(magnitudes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """How far each reading's magnitude is from the one before."""
    return np.abs(np.diff(magnitudes, prepend=magnitudes[:1]))
