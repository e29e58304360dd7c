"""Where sync was lost: ticks come in one by one, losses go out, in memory that does not grow.

A loss is a run of ticks of one track of one input that are further off than the track's tolerance,
or for which it has nothing. A few ticks in between that are in step do not end it. Where the log
names no suspected cause, the run itself is judged: whether it began with the recording, whether its
offset grows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

MERGE_TICKS = 3
MAX_OPEN = 4096
"""Tracks of inputs that may be under way at once; the one silent for longest is closed first."""
MIN_RATE_MS = 5.0
"""A run whose offset changes by less than this does not drift."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One track at one tick: `number` counts the input's ticks from 0.

    `offset_ms` is None where none was observed. `absent` says that the track has nothing here
    though something was due. `repaired` is None where nobody can say.
    """

    input_id: str
    track: str
    number: int
    ts_ms: float
    offset_ms: float | None
    tolerance_ms: float
    absent: bool = False
    repaired: bool | None = None
    item: int | None = None


@dataclass(frozen=True, slots=True)
class Loss:
    """A run out of step, from its first tick to its last.

    `kind` is "offset" or "gap". `worst_ms` and `mean_ms` are offsets (negative: the track lags).
    `rate_ppm` is how the offset grows in the run. `repaired` says that every tick was brought back
    within the tolerance; `first_item` is the number of the track's item at the first tick.
    """

    input_id: str
    track: str
    kind: str
    first_tick: int
    from_ms: float
    until_ms: float
    ticks: int
    worst_ms: float | None
    mean_ms: float | None
    rate_ppm: float | None
    at_start: bool
    at_end: bool
    repaired: bool
    first_item: int | None

    @property
    def shape(self) -> str:
        """The cause that the run itself suggests."""
        if self.kind == "gap":
            return "gap"
        if self.rate_ppm is not None:
            return "clock-rate"
        return "start-offset" if self.at_start else "step"


@dataclass(slots=True)
class _Run:
    kind: str
    first: Moment
    last: Moment
    at_start: bool
    ticks: int = 0
    repaired: bool | None = None
    worst: float = 0.0
    sums: list[float] = field(default_factory=lambda: [0.0] * 5)

    def add(self, moment: Moment) -> None:
        self.last = moment
        self.ticks += 1
        if moment.repaired is not None:
            self.repaired = moment.repaired and self.repaired is not False
        if moment.offset_ms is None or self.kind == "gap":
            return
        if abs(moment.offset_ms) > abs(self.worst):
            self.worst = moment.offset_ms
        x, y = moment.ts_ms - self.first.ts_ms, moment.offset_ms
        for at, value in enumerate((1.0, x, y, x * x, x * y)):
            self.sums[at] += value

    def end(self, *, at_end: bool) -> Loss:
        count, x, y, xx, xy = self.sums
        mean = y / count if count else None
        return Loss(
            self.first.input_id, self.first.track, self.kind, self.first.number,
            self.first.ts_ms, self.last.ts_ms, self.ticks,
            self.worst if count else None, None if mean is None else round(mean, 3),
            self._rate(count, x, y, xx, xy), self.at_start, at_end, bool(self.repaired),
            self.first.item,
        )  # fmt: skip

    def _rate(self, count: float, x: float, y: float, xx: float, xy: float) -> float | None:
        spread = count * xx - x * x
        if count < 3 or spread <= 0:
            return None
        slope = (count * xy - x * y) / spread
        moved = slope * (self.last.ts_ms - self.first.ts_ms)
        return round(slope * 1e6, 3) if abs(moved) >= MIN_RATE_MS else None


@dataclass(slots=True)
class _State:
    run: _Run | None = None
    calm: int = 0
    seen: int = 0


class LossFinder:
    """Feed it moments in the order of the log; it gives each loss when it is over."""

    def __init__(self) -> None:
        self._open: OrderedDict[tuple[str, str], _State] = OrderedDict()

    def add(self, moment: Moment) -> Iterator[Loss]:
        """The losses that end with this moment."""
        key = moment.input_id, moment.track
        state = self._open.setdefault(key, _State())
        self._open.move_to_end(key)
        yield from _advance(state, moment)
        state.seen += 1
        if len(self._open) > MAX_OPEN:
            _, oldest = self._open.popitem(last=False)
            if oldest.run is not None:
                yield oldest.run.end(at_end=True)

    def finish(self) -> Iterator[Loss]:
        """The losses that last to the end of the log."""
        for state in self._open.values():
            if state.run is not None:
                yield state.run.end(at_end=not state.calm)
        self._open.clear()


def _advance(state: _State, moment: Moment) -> Iterator[Loss]:
    kind = _kind(moment)
    if kind is None:
        state.calm += 1
        if state.run is not None and state.calm > MERGE_TICKS:
            yield state.run.end(at_end=False)
            state.run = None
        return
    if state.run is not None and state.run.kind != kind:
        yield state.run.end(at_end=False)
        state.run = None
    if state.run is None:
        state.run = _Run(kind, moment, moment, at_start=state.seen == 0)
    state.run.add(moment)
    state.calm = 0


def _kind(moment: Moment) -> str | None:
    if moment.absent:
        return "gap"
    if moment.offset_ms is not None and abs(moment.offset_ms) > moment.tolerance_ms:
        return "offset"
    return None
