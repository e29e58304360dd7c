"""How an offset goes along a recording: one value, steps with their first moment, or a drift.

The recording is cut into blocks, and every block says at each lag how well the courses agree there.
Three accounts of all blocks compete: one lag, a lag that changes evenly (a clock that runs fast or
slow), and lags that change at a few moments (optimal partitioning, Jackson et al. 2005). More
parameters have to pay for themselves; what a step leads to has to be observable on its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from services.ingest.timebase.activity import BIN_NS, Course
from services.ingest.timebase.correction import PPB
from services.ingest.timebase.correlation import (
    Observation,
    lagged_products,
    max_lag_bins,
    observe,
)
from services.ingest.timebase.lines import fit_line

BLOCK_BINS = 500
MAX_BLOCKS = 600
MIN_STEP_NS = 20_000_000
"""Less than this between two pieces is no step."""
MIN_DRIFT_NS = 20_000_000
"""Less than this from end to end is no drift."""
MAX_PIECES = 8
_PENALTY = 1.5
_REACH_BLOCKS = 12
_BUMP_BINS = 4
_UNLIKELY = 3.0

Scores = npt.NDArray[np.float64]
"""[blocks, lags]: agreement in deviations of what unrelated courses have."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the recording, in bins of the reference, with one observation.

    A step's first moment is somewhere in `start_low`..`start_high`; `start` is the likeliest.
    """

    start: int
    end: int
    seen: Observation
    start_low: int
    start_high: int


@dataclass(frozen=True, slots=True)
class Drift:
    """A lag that changes evenly: `offset_ns` at bin 0, `rate_ppb` from there (negative: the track
    falls behind), the rate's 95 % interval, and how well one place of the line is known."""

    offset_ns: int
    rate_ppb: int
    low_ppb: int
    high_ppb: int
    within_ns: int
    p_value: float


def follow(
    reference: Course, track: Course, *, resolution_ns: int = 0
) -> tuple[Stretch, ...] | Drift:
    """The course of the offset; no stretch at all where it is not observable."""
    whole = observe(reference, track, resolution_ns=resolution_ns)
    scores, bins = block_scores(reference, track)
    if scores is None:
        return ()
    drift = _drift(reference, track, scores, bins, resolution_ns)
    pieces = partition(scores)
    if drift is not None and drift_gain(scores)[0] - 2 * penalty(scores) > _gain(scores, pieces):
        return drift
    stretches = _stretches(reference, track, pieces, bins, resolution_ns)
    if len(stretches) > 1:
        return stretches
    if whole is not None:
        return (Stretch(0, len(reference), whole, 0, 0),)
    return stretches or (drift if drift is not None else ())


def block_scores(reference: Course, track: Course) -> tuple[Scores | None, int]:
    """The scores of all blocks, and how many bins a block has. None where nothing goes on."""
    size = len(reference)
    count = min(MAX_BLOCKS, size // BLOCK_BINS)
    if count < 1 or not (reference.any() and track.any()):
        return None, 0
    x, y = reference - reference.mean(), track - track.mean()
    products = lagged_products(x, y, parts=count)
    products = products - np.median(products, axis=1, keepdims=True)
    spread = float(products.std())
    return (products / spread if spread else None), size // count


def penalty(scores: Scores) -> float:
    """What one more parameter has to gain: the likeliest of so many lags and places by chance."""
    return _PENALTY * math.log(max(2, scores.size / 4))


def partition(scores: Scores) -> list[tuple[int, int, int]]:
    """(first block, behind the last block, lag) of the best pieces, by dynamic programming."""
    count = len(scores)
    sums = np.vstack([np.zeros(scores.shape[1]), np.cumsum(scores, axis=0)])
    best, back = np.full(count + 1, -np.inf), np.zeros(count + 1, np.int64)
    best[0] = 0.0
    for end in range(1, count + 1):
        parts = np.maximum(sums[end] - sums[:end], 0).max(axis=1)
        gains = best[:end] + parts**2 / (2 * np.arange(end, 0, -1)) - 2 * penalty(scores)
        back[end] = int(np.argmax(gains))
        best[end] = gains[back[end]]
    pieces: list[tuple[int, int, int]] = []
    end = count
    while end:
        start = int(back[end])
        pieces.insert(0, (start, end, int(np.argmax(sums[end] - sums[start]))))
        end = start
    return pieces


def drift_gain(scores: Scores) -> tuple[float, int, float]:
    """(gain, lag in the middle, bins a block) of the best straight line through the blocks."""
    count, width = scores.shape
    centre = np.arange(count) - (count - 1) / 2
    best = (0.0, 0, 0.0)
    if count < 3:
        return best
    span = width - 1
    for drift in range(-span, span + 1):
        shift = np.rint(centre * drift / (count - 1)).astype(int)
        lags = np.arange(width)[None, :] + shift[:, None]
        inside = (lags >= 0) & (lags < width)
        taken = np.take_along_axis(scores, np.clip(lags, 0, width - 1), axis=1)
        total = np.where(inside, taken, 0).sum(axis=0)
        top = int(np.argmax(total))
        gain = max(float(total[top]), 0.0) ** 2 / (2 * count)
        if gain > best[0]:
            best = (gain, top, drift / (count - 1))
    return best


def _gain(scores: Scores, pieces: Sequence[tuple[int, int, int]]) -> float:
    gain = sum(
        max(float(scores[start:end, lag].sum()), 0.0) ** 2 / (2 * (end - start))
        for start, end, lag in pieces
    )
    return gain - (2 * len(pieces) - 1) * penalty(scores)


def _drift(
    reference: Course, track: Course, scores: Scores, bins: int, resolution_ns: int
) -> Drift | None:
    """The drift's line through what parts of the recording say by themselves."""
    _, middle, slope = drift_gain(scores)
    count = len(scores)
    if abs(slope) * count * BIN_NS < MIN_DRIFT_NS:
        return None
    x, y, worst = [], [], 1.0
    step = max(1, count // 24)
    for first in range(0, count, step):
        start, end = first * bins, min(count, first + step) * bins
        seen = observe(reference, track, start=start, end=end, resolution_ns=resolution_ns)
        expected = -(middle - max_lag_bins() + slope * ((first + step / 2) - count / 2)) * BIN_NS
        if seen is not None and abs(seen.offset_ns - expected) < 6 * BIN_NS:
            x.append((start + end) / 2 * BIN_NS)
            y.append(seen.offset_ns)
            worst = min(worst, seen.p_value)
    if len(x) < 4:
        return None
    line = fit_line(x, y)
    if line is None or not (line.low > 0 or line.high < 0):
        return None
    left = np.abs(np.array(y) - line.offset - line.slope * np.array(x))
    within = round(float(np.median(left)) * 2) + resolution_ns
    rates = [round(item * PPB) for item in (line.slope, line.low, line.high)]
    return Drift(round(line.offset), rates[0], rates[1], rates[2], within, worst)


def _stretches(
    reference: Course,
    track: Course,
    pieces: Sequence[tuple[int, int, int]],
    bins: int,
    resolution_ns: int,
) -> tuple[Stretch, ...]:
    """The pieces whose offset is observable by itself and another than the one before."""
    size = len(reference)
    found: list[Stretch] = []
    for start, end, _ in pieces[:MAX_PIECES]:
        first, last = start * bins, size if end == pieces[-1][1] else end * bins
        seen = observe(reference, track, start=first, end=last, resolution_ns=resolution_ns)
        if seen is None:
            continue
        if not found:
            found.append(Stretch(0, last, seen, 0, 0))
        elif not _is_step(found[-1].seen, seen):
            found[-1] = replace(found[-1], end=last)
        else:
            reach = _REACH_BLOCKS * bins
            low, high = max(found[-1].start, first - reach), min(last, first + reach)
            best, low, high = _first_moment(reference, track, (found[-1].seen, seen), low, high)
            found[-1] = replace(found[-1], end=best)
            found.append(Stretch(best, last, seen, low, high))
    return tuple(found)


def _is_step(before: Observation, after: Observation) -> bool:
    unsure = before.within_ns + after.within_ns
    return abs(after.offset_ns - before.offset_ns) >= max(MIN_STEP_NS, unsure)


def _first_moment(
    reference: Course, track: Course, seen: tuple[Observation, Observation], low: int, high: int
) -> tuple[int, int, int]:
    """(likeliest, earliest, latest) bin from which the second offset holds, within `low`..`high`.

    What agrees at the old lag counts before the moment, what agrees at the new one after it: the
    logarithm of the likelihood where the track is the reference times a factor plus noise. Earliest
    and latest are within _UNLIKELY of its top.
    """
    x, y = reference - reference.mean(), track - track.mean()
    old, new = (_shifted(y, -round(item.offset_ns / BIN_NS)) for item in seen)
    middle = (low + high) // 2
    agreed = float((x * old)[:middle].sum() + (x * new)[middle:].sum())
    factor = max(agreed, 0.0) / float((x**2).sum())
    noise = max(float(y.var() - factor**2 * x.var()), 1e-9) * _BUMP_BINS
    gained = np.cumsum((x * (old - new))[low:high]) * (factor / noise)
    likelihood = np.concatenate([[0.0], gained])
    best = int(np.argmax(likelihood))
    as_good = np.flatnonzero(likelihood >= likelihood[best] - _UNLIKELY)
    return low + best, low + int(as_good[0]), low + int(as_good[-1])


def _shifted(course: Course, lag: int) -> Course:
    """The course `lag` bins later, zero where there is none."""
    out = np.zeros_like(course)
    if lag >= 0:
        out[: len(course) - lag] = course[lag:]
    else:
        out[-lag:] = course[:lag]
    return out
