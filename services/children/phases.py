"""A stopwatch over the phases of a build, each announced as it starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from validators.contracts.engine import BuildPhase

Progress = Callable[[str], None]
"""Called with the name of each phase as it starts."""


class Phases:
    """Times what runs under `phase`; durations are measurements, nothing is decided by them."""

    def __init__(self, announce: Progress) -> None:
        self._announce = announce
        self._done: list[BuildPhase] = []

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self._announce(name)
        started = time.perf_counter()
        yield
        self._done.append(BuildPhase(name, round((time.perf_counter() - started) * 1e3, 3)))

    @property
    def done(self) -> tuple[BuildPhase, ...]:
        return tuple(self._done)
