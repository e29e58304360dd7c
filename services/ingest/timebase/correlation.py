"""By how much one course of activity is behind another, with an interval, or that nobody can tell.

The two courses are multiplied at every shift. What counts as a peak is judged by the same two
courses shifted so far that they can have nothing to do with each other (circular shifts): a rhythm
that repeats itself, or a slow change, peaks there just as well and is then *not observable*. The
tail of those peaks is Gumbel's, as that of any maximum over a stationary course (Leadbetter 1983).
The interval is a jackknife over parts of the recording (Künsch 1989, blocks of a dependent series).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from services.ingest.timebase.activity import BIN_NS, Course

MAX_LAG_NS = 500_000_000
"""Offsets are looked for within half a second: the more is tried, the more fits by accident."""
ALPHA = 0.002
"""Share of unrelated pairs that may be told an offset. Measured in the benchmark `ingest`."""
MIN_NULL_BLOCKS = 12
MIN_EVENTS = 4.0
"""As many moments, counted by their share of the peak, have to agree."""
JACKKNIFE_PARTS = 16
RIVAL_SHARE = 0.9
"""A lag that fits by this share of the best one may be it as well."""
MAX_WITHIN_NS = 60_000_000
"""What is less sure than this is not observed."""
FLOOR_NS = 4_000_000
"""No interval is narrower to either side: what a course of 10 ms can resolve."""
_EULER = 0.5772156649


@dataclass(frozen=True, slots=True)
class Observation:
    """`offset_ns` (negative: the track lags) within `within_ns` to either side at about 95 %.

    `p_value` is the chance of as high a peak between unrelated courses.
    """

    offset_ns: int
    within_ns: int
    p_value: float


def max_lag_bins() -> int:
    return MAX_LAG_NS // BIN_NS


def observe(
    reference: Course,
    track: Course,
    *,
    start: int = 0,
    end: int | None = None,
    resolution_ns: int = 0,
) -> Observation | None:
    """The offset of `track` against `reference` within bins `start` to `end` of the reference.

    The courses are on one grid of BIN_NS and of one length. `resolution_ns` widens the interval by
    what the coarser track cannot tell: half the time between its items. None where the offset is
    not observable: too short, too little going on, or no peak that stands out.
    """
    x, y = reference - reference.mean(), track - track.mean()
    x[:start] = 0
    x[len(x) if end is None else end :] = 0
    shifts = circular(x, y)
    lags = max_lag_bins()
    if shifts is None:
        return None
    inside = np.concatenate([shifts[-lags:], shifts[: lags + 1]])
    p_value = tail(float(inside.max()), shifts)
    if p_value > ALPHA:
        return None
    products = lagged_products(x[start:end], y, start)
    total = products.sum(axis=0)
    peak = int(np.argmax(total))
    if _events(x, y, peak - lags) < MIN_EVENTS:
        return None
    within = max(jackknife(products), _ambiguity(total, peak))
    if within > MAX_WITHIN_NS:
        return None
    return Observation(_to_offset(refined(total, peak)), within + resolution_ns, p_value)


def circular(x: Course, y: Course) -> Course | None:
    """The products of two centred courses at every circular shift of the second.

    None where nothing can be compared: too short, or nothing goes on.
    """
    size = len(x)
    if size < (MIN_NULL_BLOCKS + 3) * (2 * max_lag_bins() + 1) or not (x.any() and y.any()):
        return None
    spectrum = np.conj(np.fft.rfft(x)) * np.fft.rfft(y)
    return np.asarray(np.fft.irfft(spectrum, size), np.float64)


def tail(peak: float, shifts: Course) -> float:
    """The chance of a peak as high within the lags, by the peaks of far shifts of equal width."""
    lags = max_lag_bins()
    far = shifts[2 * lags : -2 * lags]
    width = 2 * lags + 1
    count = len(far) // width
    maxima = far[: count * width].reshape(count, width).max(axis=1)
    spread = float(maxima.std(ddof=1)) * math.sqrt(6) / math.pi
    highest = float(maxima.max())
    if peak <= highest or spread == 0:
        return 1.0 if peak <= highest else 0.0
    mode = float(maxima.mean()) - _EULER * spread
    return -math.expm1(-math.exp(-(peak - mode) / spread))


def lagged_products(
    x: Course, y: Course, start: int = 0, parts: int = JACKKNIFE_PARTS
) -> npt.NDArray[np.float64]:
    """[parts, 2 * lags + 1]: the products at each lag of `x` with `y` from `start` on, in parts."""
    lags = max_lag_bins()
    edges = np.linspace(0, len(x), parts + 1).astype(int)
    padded = np.pad(y, lags)
    return np.stack([
        np.correlate(padded[start + first : start + last + 2 * lags], x[first:last], mode="valid")
        for first, last in itertools.pairwise(edges.tolist())
    ])  # fmt: skip


def jackknife(products: npt.NDArray[np.float64]) -> int:
    """Twice the deviation of the peak's place when each part is left out in turn, in ns."""
    total = products.sum(axis=0)
    count = len(products)
    left_out = [total - part for part in products]
    places = np.array([refined(rest, int(np.argmax(rest))) for rest in left_out])
    deviation = math.sqrt((count - 1) / count * float(((places - places.mean()) ** 2).sum()))
    return max(FLOOR_NS, round(2 * deviation * BIN_NS))


def _ambiguity(total: Course, peak: int) -> int:
    """How far the furthest lag is that fits all but as well, in ns."""
    rivals = np.flatnonzero(total >= RIVAL_SHARE * total[peak])
    return int(np.abs(rivals - peak).max()) * BIN_NS if len(rivals) > 1 else 0


def refined(total: Course, peak: int) -> float:
    """The peak's place between bins, by the parabola through it and its neighbours."""
    if not 0 < peak < len(total) - 1:
        return float(peak)
    left, middle, right = (float(total[peak + step]) for step in (-1, 0, 1))
    bend = left - 2 * middle + right
    return peak if bend >= 0 else peak + 0.5 * (left - right) / bend


def _to_offset(place: float) -> int:
    """The track's own delay is the lag of the best shift; an offset is its negative."""
    return -round((place - max_lag_bins()) * BIN_NS)


def _events(x: Course, y: Course, lag: int) -> float:
    """How many moments the peak is made of: (sum)^2 / sum of squares, in bumps of the smoothing."""
    shared = np.maximum(x * np.roll(y, -lag), 0)
    squares = float((shared**2).sum())
    return float(shared.sum()) ** 2 / squares / _BUMP_BINS if squares else 0.0


_BUMP_BINS = 4.0
"""Bins that one moment fills after smoothing."""
