"""What the time stamps of one track say about it: start, rate, holes, bursts, order.

A line is fitted through block medians by the median of all slopes (Theil 1950, Sen 1968), so that
jitter, bursts and lost items do not bend it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from services.ingest.timebase.correction import PPB
from services.ingest.timebase.lines import fit_line

HOLE_PERIODS = 1.5
"""An interval longer than so many periods has lost an item."""
BURST_PERIODS = 0.25
"""Items closer than so many periods, after a hole, were held up and came together."""
BURST_ITEMS = 3
MAX_RATE_PPB = 20_000_000
"""Two percent: what is further off has another rate, not a bad clock."""
FIT_BLOCKS = 200
FIT_ITEMS = 50
"""Fewer items than this have no rate to speak of."""
MAX_KEPT = 1000
"""Holes, bursts and reordered items that are kept; all are counted."""

Times = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Hole:
    """`missing` items between two: from the first moment without one until the next item.

    `late` items came right behind it, closer together than they can have happened.
    """

    from_ns: int
    until_ns: int
    missing: int
    late: int = 0


@dataclass(frozen=True, slots=True)
class Rate:
    """The track's clock against its nominal period: positive runs slow, its items come late.

    The interval is that of the slopes' 95 %.
    """

    ppb: int
    low_ppb: int
    high_ppb: int

    @property
    def certain(self) -> bool:
        return self.low_ppb > 0 or self.high_ppb < 0


@dataclass(frozen=True, slots=True)
class StampFacts:
    """`reordered` items came behind a later one; `first_reordered` is the first one's number."""

    count: int
    first_ns: int
    last_ns: int
    rate: Rate | None
    holes: tuple[Hole, ...]
    hole_count: int
    reordered: int
    first_reordered: int | None
    reordered_at_ns: int | None


def read_stamps(times: Times, period_ns: int | None) -> StampFacts | None:
    """The facts of a track's times, in the order in which its items came. None for no item."""
    if not len(times):
        return None
    back = np.flatnonzero(times < np.maximum.accumulate(times))
    ordered = np.sort(times) if len(back) else times
    steps = np.diff(ordered)
    holes = _holes(ordered, steps, period_ns) if period_ns else []
    first = int(back[0]) if len(back) else None
    return StampFacts(
        count=len(times),
        first_ns=int(ordered[0]),
        last_ns=int(ordered[-1]),
        rate=fit_rate(ordered, period_ns) if period_ns else None,
        holes=tuple(holes[:MAX_KEPT]),
        hole_count=len(holes),
        reordered=len(back),
        first_reordered=first,
        reordered_at_ns=None if first is None else int(times[first]),
    )


def fit_rate(ordered: Times, period_ns: int) -> Rate | None:
    """The rate error of a track that should have an item every `period_ns`.

    None where there are too few items, or where the period is plainly another one.
    """
    if len(ordered) < FIT_ITEMS:
        return None
    places = _places(ordered, period_ns)
    late = (ordered - ordered[0]) - places * period_ns
    blocks = np.array_split(np.arange(len(ordered)), min(FIT_BLOCKS, len(ordered) // 5))
    x = np.array([np.median(places[block]) for block in blocks])
    y = np.array([np.median(late[block]) for block in blocks])
    line = fit_line(x, y)
    if line is None:
        return None
    found = [round(item / period_ns * PPB) for item in (line.slope, line.low, line.high)]
    return Rate(*found) if abs(found[0]) <= MAX_RATE_PPB else None


def _places(ordered: Times, period_ns: int) -> npt.NDArray[np.int64]:
    """How many periods after the first one each item was due.

    A phase follows the items slowly, so that jitter does not add up and lost items are counted.
    """
    if np.all(np.abs(np.diff(ordered) - period_ns) < period_ns * 0.25):
        return np.arange(len(ordered), dtype=np.int64)
    places = np.zeros(len(ordered), np.int64)
    place, phase = 0, float(ordered[0])
    for index, ts_ns in enumerate(ordered.tolist()):
        passed = max(0, round((ts_ns - phase) / period_ns))
        place += passed
        phase += passed * period_ns
        phase += _FOLLOW * (ts_ns - phase)
        places[index] = place
    return places


_FOLLOW = 0.1


def _holes(ordered: Times, steps: Times, period_ns: int) -> list[Hole]:
    at = np.flatnonzero(steps > HOLE_PERIODS * period_ns)
    close = steps < BURST_PERIODS * period_ns
    ends = np.flatnonzero(~close)  # a run of close items ends at the next wider step
    holes = []
    for index in at.tolist():
        after = int(np.searchsorted(ends, index + 1))
        until = int(ends[after]) if after < len(ends) else len(steps)
        missing = max(1, round(int(steps[index]) / period_ns) - 1)
        together = until - index
        holes.append(Hole(
            from_ns=int(ordered[index]) + period_ns,
            until_ns=int(ordered[index + 1]),
            missing=missing,
            late=min(together, missing) if together >= BURST_ITEMS else 0,
        ))  # fmt: skip
    return holes
