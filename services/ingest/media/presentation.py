"""Puts a decoder's frames in the order of their presentation times, and says where it had to.

Pure: times in ticks of the stream come in, times come out. A frame waits until no later one can
come before it: until the decoding time that was reached is beyond its own, or DEPTH frames wait,
the most that any codec here may hold back (H.264, A.3.1: max_dec_frame_buffering is at most 16).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from fractions import Fraction
from typing import Generic, TypeVar

from services.ingest.media.anomalies import AnomalyLog

T = TypeVar("T")

DEPTH = 16


class PresentationOrder(Generic[T]):
    """Times that come out rise strictly.

    Reports to the log, with the number of the frame as the decoder gave it:
        missing-timestamp: a frame without a time takes that of the one before plus `period`.
        out-of-order: its time was before that of a frame that came earlier; it was put in place.
        duplicate-timestamp: a second frame at one time; it is left out.
        late-frame: it belonged before what had been given out already; it is left out.
    """

    def __init__(
        self, log: AnomalyLog, time_base: Fraction, period: Fraction | None, depth: int = DEPTH
    ) -> None:
        self._log = log
        self._time_base = time_base
        self._period = int(period) if period is not None else None
        self._depth = depth
        self._waiting: list[tuple[int, int, T]] = []
        self._count = 0
        self._highest: int | None = None
        self._given: int | None = None

    def offer(self, ticks: int | None, frame: T, reached: int | None) -> Iterator[tuple[int, T]]:
        """One decoded frame; `reached` is the decoding time up to which the stream was read.

        Raises:
            ValueError: no time, and no period to make one of.
        """
        number, self._count = self._count, self._count + 1
        if ticks is None:
            ticks = self._guess(number)
        if self._given is not None and ticks <= self._given:
            code = "duplicate-timestamp" if ticks == self._given else "late-frame"
            self._report(code, number, ticks, "left out")
            return
        if self._highest is not None and ticks < self._highest:
            self._report("out-of-order", number, ticks, f"{self._ms(self._highest - ticks)} late")
        self._highest = ticks if self._highest is None else max(self._highest, ticks)
        heapq.heappush(self._waiting, (ticks, number, frame))
        while self._waiting and (
            len(self._waiting) > self._depth
            or (reached is not None and self._waiting[0][0] < reached)
        ):
            yield from self._release()

    def finish(self) -> Iterator[tuple[int, T]]:
        """What still waits."""
        while self._waiting:
            yield from self._release()

    def _release(self) -> Iterator[tuple[int, T]]:
        ticks, number, frame = heapq.heappop(self._waiting)
        if ticks == self._given:
            self._report("duplicate-timestamp", number, ticks, "left out")
            return
        self._given = ticks
        yield ticks, frame

    def _guess(self, number: int) -> int:
        if self._period is None:
            raise ValueError("a frame without a time in a stream without a rate")
        ticks = 0 if self._highest is None else self._highest + max(1, self._period)
        self._report("missing-timestamp", number, ticks, "taken from the frame before")
        return ticks

    def _report(self, code: str, number: int, ticks: int, detail: str) -> None:
        self._log.add(code, number, float(ticks * self._time_base * 1000), detail)

    def _ms(self, ticks: int) -> str:
        return f"{float(ticks * self._time_base * 1000):.3f} ms"
