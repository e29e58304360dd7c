"""Which rows may be taken as independent of each other, and which move together.

Rows of one recording, repetitions of one row and neighbours in time that are alike carry less than
their number says. A permutation that moves them one by one would call their likeness drift.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from validators.drift.detectors import principal
from validators.drift.labelling import Ints, Units
from validators.drift.window import DriftWindow

Floats = npt.NDArray[np.float64]

REPEATED = 0.5
"""A window of which more than this share of rows repeat others, where the other has at most half
of that, was filled with repetitions."""

CERTAIN = 4.0
"""Neighbours are alike where their correlation is this many standard errors from none."""

BLOCK_TIMES = 3
"""Blocks are this many correlation times long, so that most of the likeness is inside them."""

FEWEST_BLOCKS = 8

_COORDINATES = 4  # principal coordinates of each embedding that likeness is looked for in


@dataclass(frozen=True, slots=True)
class Likeness:
    """Of one window: rows, how many independent ones they are worth, and why fewer.

    `repeated` is the share of rows that repeat another one, `time_rows` the correlation time in
    rows (1: neighbours are independent).
    """

    rows: int
    worth: float
    repeated: float = 0.0
    time_rows: float = 1.0


@dataclass(frozen=True, slots=True)
class Dependence:
    units: Units
    reference: Likeness
    current: Likeness
    reason: str  # "none", "recordings", "repetitions", "time"


def find_dependence(reference: DriftWindow, current: DriftWindow) -> Dependence:
    """The units of two windows; recordings where they are known, else what the rows show."""
    windows = (reference, current)
    if any(window.recordings is not None for window in windows):
        return _by(windows, [_recordings(window) for window in windows], "recordings")
    keys = [_keys(window) for window in windows]
    repeated = [1 - len(np.unique(key)) / max(len(key), 1) for key in keys]
    if max(repeated) > REPEATED and min(repeated) <= max(repeated) / 2:
        return _by(windows, keys, "repetitions", repeated)
    times = [correlation_time(window) for window in windows]
    if max(times) > 1:
        length = int(np.ceil(BLOCK_TIMES * max(times)))
        blocks = [_blocks(window, length) for window in windows]
        return _by(windows, blocks, "time", times_rows=times)
    rows = [
        Likeness(window.rows, window.rows, share)
        for window, share in zip(windows, repeated, strict=True)
    ]
    return Dependence(Units.of_rows(reference.rows, current.rows), rows[0], rows[1], "none")


def correlation_time(window: DriftWindow) -> float:
    """Rows from one independent row to the next in recorded order; 1 where times are not known.

    The integrated autocorrelation time of the slowest column, summed until it no longer grows
    (Sokal's window, 1997).
    """
    if window.times_ms is None or window.rows < 16:
        return 1.0
    columns = _series(window)[np.argsort(window.times_ms, kind="stable")]
    if not columns.shape[1]:
        return 1.0
    rows = len(columns)
    power = np.abs(np.fft.rfft(columns, 2 * rows, axis=0)) ** 2
    correlations = np.fft.irfft(power, axis=0)[: rows // 2] / rows
    slow = correlations[1] > CERTAIN / np.sqrt(rows)
    return max([1.0, *(_integrated(correlations[:, column]) for column in np.flatnonzero(slow))])


def _integrated(correlations: Floats) -> float:
    sums = 2 * np.cumsum(correlations) - 1
    enough = np.flatnonzero(np.arange(len(sums)) >= 5 * sums)
    return float(sums[enough[0]] if len(enough) else sums[-1])


def _series(window: DriftWindow) -> Floats:
    """[rows, columns] of mean 0 and variance 1: descriptors and leading coordinates of vectors."""
    columns = list[Floats]()
    for scalars in window.descriptors.values():
        if scalars.present.any():
            columns.append(np.where(scalars.present, scalars.values, scalars.observed().mean()))
    for embedded in window.embeddings.values():
        scores, _ = principal(embedded.vectors, min(_COORDINATES, len(embedded)), 0)
        whole = np.zeros((window.rows, scores.shape[1]))
        whole[embedded.rows] = scores
        columns += list(whole.T)
    series = [(column - column.mean()) / column.std() for column in columns if column.std() > 0]
    return np.stack(series, axis=1) if series else np.zeros((window.rows, 0))


def _keys(window: DriftWindow) -> Ints:
    """[rows]: equal where vectors and descriptors are, where these tell rows apart at all."""
    telling = list[Floats]()
    for scalars in window.descriptors.values():
        if len(np.unique(scalars.values)) > window.rows / 20:
            telling.append(scalars.values[:, None])
    for embedded in window.embeddings.values():
        whole = np.zeros((window.rows, embedded.vectors.shape[1]))
        whole[embedded.rows] = embedded.vectors
        telling.append(whole)
    if not telling:
        return np.arange(window.rows)
    seen: dict[bytes, int] = {}
    found = [seen.setdefault(row.tobytes(), len(seen)) for row in np.concatenate(telling, axis=1)]
    return np.asarray(found, np.intp)


def _recordings(window: DriftWindow) -> Ints:
    given = window.recordings
    return np.arange(window.rows) if given is None else np.asarray(given, np.intp)


def _blocks(window: DriftWindow, length: int) -> Ints:
    """Stretches of `length` rows in recorded order; a short end belongs to the one before."""
    blocks = np.empty(window.rows, np.intp)
    order = (
        np.arange(window.rows)
        if window.times_ms is None
        else np.argsort(window.times_ms, kind="stable")
    )
    last = max(window.rows // length - 1, 0)
    blocks[order] = np.minimum(np.arange(window.rows) // length, last)
    return blocks


def _by(
    windows: tuple[DriftWindow, DriftWindow],
    units: list[Ints],
    reason: str,
    repeated: list[float] | None = None,
    times_rows: list[float] | None = None,
) -> Dependence:
    found = list[Likeness]()
    for side, window in enumerate(windows):
        count = len(np.unique(units[side]))
        time = times_rows[side] if times_rows else 1.0
        worth = window.rows / time if times_rows else float(count)
        if times_rows and count < FEWEST_BLOCKS:
            worth = min(worth, float(count))
        found.append(Likeness(window.rows, worth, repeated[side] if repeated else 0.0, time))
    return Dependence(Units.of(units[0], units[1]), found[0], found[1], reason)
