"""Every tick of every track decided exactly once, front to back, holding two items of a track.

The nearest item within the tolerance is taken. Where there is none the declared policy decides. A
held item is never older than its rule says; a value between two items exists only where both are
within the tolerance and hold numbers.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from services.ingest.timebase.rule import Rule
from validators.contracts.errors import BadInput
from validators.contracts.modality import Gap

REORDER_DEPTH = 64
"""Items that may be out of order and are still put in their place."""


@dataclass(frozen=True, slots=True, order=True)
class Stamp:
    """An item of a track by its time on the common base and its number."""

    ts_ns: int
    index: int


class Outcome(enum.Enum):
    """What became of a track at a tick."""

    TAKEN = "taken"  # the nearest item, within the tolerance
    INTERPOLATED = "interpolated"  # between the neighbours, both within the tolerance
    HELD = "held"  # the last item, within its age
    DROPPED = "dropped"  # the track has nothing here
    REFUSED = "refused"  # the track has nothing here, and may not
    NONE = "none"  # nothing was due: nobody said anything, or the track is not running


@dataclass(frozen=True, slots=True)
class Placement:
    """One track at one tick: item `first`, and `share` of the way on towards item `second`.

    `offset_ns` is the item's time less the tick's: negative where the item is older. An
    interpolated value stands at the tick itself.
    """

    outcome: Outcome
    first: int | None = None
    second: int | None = None
    share: float = 0.0
    offset_ns: int | None = None


NOTHING = Placement(Outcome.NONE)


def align(
    ticks: Iterable[int], tracks: Mapping[str, Iterable[Stamp]], rules: Mapping[str, Rule]
) -> Iterator[tuple[int, dict[str, Placement]]]:
    """(tick in ns, placement of each track) for every tick, in order.

    Ticks have to come in order; stamps within REORDER_DEPTH of it.
    """
    cursors = {name: Cursor(stamps, rules[name]) for name, stamps in tracks.items()}
    for tick in ticks:
        yield tick, {name: cursor.decide(tick) for name, cursor in cursors.items()}


class Cursor:
    """Walks along one track. Holds the neighbours of the tick and the reorder window."""

    def __init__(self, stamps: Iterable[Stamp], rule: Rule) -> None:
        self._stamps = in_order(stamps)
        self._rule = rule
        self._before: Stamp | None = None
        self._after: Stamp | None = next(self._stamps, None)

    def decide(self, tick_ns: int) -> Placement:
        """What the track has at a tick. Ticks never go back."""
        while self._after is not None and self._after.ts_ns <= tick_ns:
            self._before, self._after = self._after, next(self._stamps, None)
        return place(tick_ns, self._before, self._after, self._rule)


def place(tick_ns: int, before: Stamp | None, after: Stamp | None, rule: Rule) -> Placement:
    """The decision itself: `before` is the last item up to the tick, `after` the next one."""
    near = [
        item
        for item in (before, after)
        if item is not None and abs(item.ts_ns - tick_ns) <= rule.tolerance_ns
    ]
    if len(near) == 2 and rule.gap is Gap.INTERPOLATE and rule.numeric:
        return _between(tick_ns, near[0], near[1])
    if near:
        nearest = min(near, key=lambda item: abs(item.ts_ns - tick_ns))
        offset = nearest.ts_ns - tick_ns
        return Placement(Outcome.TAKEN, nearest.index, offset_ns=offset)
    age = tick_ns - before.ts_ns if before is not None else None
    if rule.gap is Gap.HOLD and before is not None and age is not None and age <= rule.hold_ns:
        return Placement(Outcome.HELD, before.index, offset_ns=-age)
    if not rule.periodic or before is None or after is None:
        return NOTHING
    return Placement(Outcome.REFUSED if rule.gap is Gap.REFUSE else Outcome.DROPPED)


def _between(tick_ns: int, before: Stamp, after: Stamp) -> Placement:
    if before.ts_ns == tick_ns:
        return Placement(Outcome.TAKEN, before.index, offset_ns=0)
    share = (tick_ns - before.ts_ns) / (after.ts_ns - before.ts_ns)
    return Placement(Outcome.INTERPOLATED, before.index, after.index, share, 0)


def in_order(stamps: Iterable[Stamp], depth: int = REORDER_DEPTH) -> Iterator[Stamp]:
    """The stamps by time, where none is more than `depth` places from its own."""
    waiting: list[Stamp] = []
    for stamp in stamps:
        heapq.heappush(waiting, stamp)
        if len(waiting) > depth:
            yield heapq.heappop(waiting)
    while waiting:
        yield heapq.heappop(waiting)


def blend(first: Any, second: Any, share: float) -> npt.NDArray[np.float64] | dict[str, float]:
    """The value `share` of the way from one item's value to the next one's.

    Readings blend where both items have them.

    Raises:
        BadInput: a text, which has nothing between it and the next one.
    """
    if isinstance(first, str) or isinstance(second, str):
        raise BadInput("a text is never interpolated", remedy="Declare gap: hold or drop.")
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        shared = first.keys() & second.keys()
        return {
            name: float(first[name] + share * (second[name] - first[name]))
            for name in sorted(shared)
        }
    start, end = np.asarray(first, np.float64), np.asarray(second, np.float64)
    return np.asarray(start + share * (end - start), np.float64)
