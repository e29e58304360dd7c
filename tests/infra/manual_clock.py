"""A clock that moves only when it is told to."""

from __future__ import annotations


class ManualClock:
    """The `Clock` port for tests: both clocks start at given times and move together."""

    def __init__(self, wall_ns: int = 1_700_000_000_000_000_000, monotonic_ns: int = 0) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns

    def monotonic_ns(self) -> int:
        return self._monotonic_ns

    def wall_ns(self) -> int:
        return self._wall_ns

    def advance(self, seconds: float) -> None:
        self._wall_ns += round(seconds * 1e9)
        self._monotonic_ns += round(seconds * 1e9)
