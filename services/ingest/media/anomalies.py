"""What a decoder noticed about its source without having to stop: values, for gates to judge."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

MAX_KEPT = 50
"""Of each code; all are counted. A damaged clock repeats itself for hours."""


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One thing that is not as it should be.

    `code` is a stable word (see the module that reports it), `index` the number of the frame,
    block, page or line in its source, counted from 0 (lines from 1), `ts_ms` its time on the
    track's own clock where it has one. `detail` holds measurements, never content.
    """

    code: str
    index: int
    ts_ms: float | None
    detail: str


class AnomalyLog:
    """Keeps the first MAX_KEPT of each code and counts them all."""

    def __init__(self) -> None:
        self._kept: list[Anomaly] = []
        self._counts: Counter[str] = Counter()

    def add(self, code: str, index: int, ts_ms: float | None, detail: str) -> None:
        self._counts[code] += 1
        if self._counts[code] <= MAX_KEPT:
            rounded = None if ts_ms is None else round(ts_ms, 3)
            self._kept.append(Anomaly(code, index, rounded, detail))

    def add_once(self, code: str, index: int, ts_ms: float | None, detail: str) -> None:
        """Only its first occurrence is kept and counted: for what holds of the whole source."""
        if code not in self._counts:
            self.add(code, index, ts_ms, detail)

    @property
    def kept(self) -> tuple[Anomaly, ...]:
        return tuple(self._kept)

    @property
    def counts(self) -> tuple[tuple[str, int], ...]:
        """(code, how often), sorted by code."""
        return tuple(sorted(self._counts.items()))
