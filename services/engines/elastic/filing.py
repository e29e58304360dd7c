"""Hands shape requests to the build queue in a thread of its own, so that no request waits for it.

The queue may be slow, full, or on a disk that is: what cannot be filed is counted and dropped.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from validators.contracts.builds import BuildQueue, ShapeRequest
from validators.contracts.errors import ModalgateError

MAX_PENDING = 64
_CLOSE_S = 5.0

Settled = Callable[[ShapeRequest, str], None]
"""Told of each request what became of it: "filed", "known" (to the queue already) or "dropped"."""

_log = logging.getLogger(__name__)


class BackgroundFiling:
    """One thread before a `BuildQueue`. `file` never blocks and never raises."""

    def __init__(self, builds: BuildQueue) -> None:
        self._builds = builds
        self._pending: queue.Queue[tuple[ShapeRequest, Settled] | None] = queue.Queue(MAX_PENDING)
        self._thread = threading.Thread(target=self._work, name="shape-requests", daemon=True)
        self._thread.start()

    def file(self, request: ShapeRequest, settled: Settled) -> None:
        """Pass a request on; `settled` is called in some thread, soon."""
        try:
            self._pending.put_nowait((request, settled))
        except queue.Full:
            settled(request, "dropped")

    def close(self) -> None:
        """End the thread once what is pending is filed; a queue that hangs is left behind."""
        try:
            self._pending.put(None, timeout=_CLOSE_S)
        except queue.Full:
            return
        self._thread.join(_CLOSE_S)

    def _work(self) -> None:
        while (item := self._pending.get()) is not None:
            request, settled = item
            settled(request, self._file(request))

    def _file(self, request: ShapeRequest) -> str:
        try:
            return "filed" if self._builds.file(request) else "known"
        except ModalgateError as error:
            _log.warning("a shape of %s was not asked for: %s", request.encoder, error.what)
        except Exception as error:  # the thread serves all engines: no request may end it
            _log.error("a shape of %s was not asked for: %s", request.encoder, type(error).__name__)
        return "dropped"
