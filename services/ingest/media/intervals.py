"""The times of a video's frames, added up: how many, how long, how far apart."""

from __future__ import annotations

from services.ingest.measures import Measures


class Intervals:
    """Of the frames that were given out."""

    def __init__(self) -> None:
        self.frames = 0
        self._first_ms = 0.0
        self._end_ms = 0.0
        self._last_ms = 0.0
        self._intervals: tuple[float, float] | None = None

    def add(self, ts_ms: float, length_ms: float) -> None:
        if self.frames:
            step = ts_ms - self._last_ms
            low, high = self._intervals or (step, step)
            self._intervals = (min(low, step), max(high, step))
        else:
            self._first_ms = ts_ms
        self.frames += 1
        self._last_ms = ts_ms
        self._end_ms = ts_ms + length_ms

    def measures(self) -> Measures:
        low, high = self._intervals or (0.0, 0.0)
        values = {
            "duration_ms": self._end_ms - self._first_ms,
            "frames": float(self.frames),
            "interval_max_ms": high,
            "interval_min_ms": low,
            "start_ms": self._first_ms,
        }
        return tuple((name, round(value, 6)) for name, value in values.items())
