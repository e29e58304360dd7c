"""The shapes that were asked for, counted by any number of threads."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from services.engines.profiles.bounds import MAX_DIMS, MAX_SIZE
from services.engines.profiles.histogram import ShapeHistogram, ShapeRecorder


class SharedRecorder:
    """A window of time, and all windows together. A contract of fixed shapes records nothing."""

    def __init__(self, dims: Sequence[str]) -> None:
        self._dims = tuple(dims)
        self._records = 1 <= len(self._dims) <= MAX_DIMS
        self._lock = threading.Lock()
        if self._records:
            self._all, self._window = ShapeRecorder(self._dims), ShapeRecorder(self._dims)

    def add(self, sizes: Mapping[str, int]) -> None:
        """Count one request; a size that no profile could have is not recorded."""
        if not self._records or any(not 1 <= sizes[name] <= MAX_SIZE for name in self._dims):
            return
        with self._lock:
            self._all.add(sizes)
            self._window.add(sizes)

    def everything(self) -> ShapeHistogram | None:
        """All that was recorded, or None for a contract whose shapes are fixed."""
        with self._lock:
            return self._all.histogram() if self._records else None

    def take_window(self) -> ShapeHistogram | None:
        """What was recorded since the last window was taken; a new one begins."""
        if not self._records:
            return None
        with self._lock:
            taken, self._window = self._window, ShapeRecorder(self._dims)
        return taken.histogram()

    def give_back(self, window: ShapeHistogram) -> None:
        """A window that could not be kept becomes part of the present one."""
        with self._lock:
            self._window.include(window)
