"""The frames that samples are made of, taken while a video goes by.

The frame of a sample is decided by the same rule as any tick: the two frames around the moment are
known when the later one has come. Frames that nobody takes are looked at for motion and forgotten.
Those that are taken are compressed and measured by a thread, while the decoder goes on.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from services.ingest.measures import measure_image
from services.ingest.normalise import write_png
from services.ingest.recording.tracks import Frame
from services.ingest.timebase.align import Outcome, Placement, Stamp, place
from services.ingest.timebase.rule import Rule
from validators.contracts.errors import TooLarge

Pixels = npt.NDArray[np.uint8]

MAX_SAMPLES = 100_000
"""Of one recording."""
_GREY_ROWS = 72
_EFFORT = 1
_MAX_WAITING = 4


class FrameTaker:
    """Offer frames in order of time; `frames` are on disk by the number of their sample.

    For use in a `with`: its thread ends with it.
    """

    def __init__(self, rule: Rule, every_ns: int, folder: Path) -> None:
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="frames")
        self._waiting: deque[tuple[int, Future[Frame]]] = deque()
        self._rule = rule
        self._every_ns = every_ns
        self._folder = folder
        self._start_ns: int | None = None
        self._next = 0
        self._before: tuple[Stamp, Pixels] | None = None
        self._last: tuple[int, Future[Frame]] | None = None
        self.frames: dict[int, Frame] = {}
        self.placements: dict[int, Placement] = {}

    def offer(self, stamp: Stamp, pixels: Pixels) -> None:
        if self._start_ns is None:
            self._start_ns = stamp.ts_ns
        while (tick_ns := self._tick(self._start_ns)) < stamp.ts_ns:
            self._decide(tick_ns, stamp, pixels)
        self._before = stamp, pixels

    def finish(self, end_ns: int) -> None:
        """Decide what is left up to `end_ns`, exclusive; the first sample always."""
        while self._start_ns is not None:
            tick_ns = self._tick(self._start_ns)
            if tick_ns >= end_ns and self._next:
                break
            self._decide(tick_ns, None, None)
        self._collect(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.shutdown(cancel_futures=True)

    def _tick(self, start_ns: int) -> int:
        return start_ns + self._next * self._every_ns

    def _decide(self, tick_ns: int, after: Stamp | None, pixels: Pixels | None) -> None:
        number = self._next
        if number >= MAX_SAMPLES:
            raise TooLarge(
                f"a recording gives more than {MAX_SAMPLES} samples",
                remedy="Split it, or raise ingest.sample_every_ms.",
            )
        self._next += 1
        before = self._before
        found = place(tick_ns, before[0] if before else None, after, self._rule)
        self.placements[number] = found
        if found.outcome not in (Outcome.TAKEN, Outcome.HELD) or found.first is None:
            return
        if before is not None and found.first == before[0].index:
            self._write(number, found.first, before[1])
        elif pixels is not None:
            self._write(number, found.first, pixels)

    def _write(self, number: int, index: int, pixels: Pixels) -> None:
        """Once for each frame: several samples may hold the same one."""
        if self._last is None or self._last[0] != index:
            path = self._folder / f"frame-{index}.png"
            self._last = index, self._writer.submit(_written, path, pixels)
        self._waiting.append((number, self._last[1]))
        self._collect(_MAX_WAITING)

    def _collect(self, left: int) -> None:
        """Wait until no more than `left` frames are in memory."""
        while len(self._waiting) > left:
            number, written = self._waiting.popleft()
            self.frames[number] = written.result()


def _written(path: Path, pixels: Pixels) -> Frame:
    path.write_bytes(write_png(np.ascontiguousarray(pixels), effort=_EFFORT))
    return Frame(path, measure_image(pixels), pixels.shape)


def grey(pixels: npt.NDArray[Any]) -> Pixels:
    """A small picture of a frame's brightness: its green, every few pixels."""
    step = max(1, len(pixels) // _GREY_ROWS)
    return np.ascontiguousarray(pixels[::step, ::step, 1])
