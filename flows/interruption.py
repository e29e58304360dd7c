"""Ctrl-C and SIGTERM end a release between two pieces of work, with a document and no leftovers.

The first signal asks; the flow answers at its next sign of progress, and children are cancelled. A
second one is not waited for.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

from flows.progress import Reporter, report_to, reporter
from validators.contracts.errors import ModalgateError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ASKED: ContextVar[threading.Event | None] = ContextVar("asked", default=None)


class Interrupted(ModalgateError):
    """Somebody asked the release to end."""


class _Stopping:
    """A reporter that raises where the flow should end, and passes everything else on."""

    def __init__(self, inner: Reporter, asked: threading.Event) -> None:
        self._inner, self._asked = inner, asked

    def started(self, step: str, detail: str = "") -> None:
        self._check(step)
        self._inner.started(step, detail)

    def advanced(self, step: str, done: int, total: int, detail: str = "") -> None:
        self._check(step)
        self._inner.advanced(step, done, total, detail)

    def finished(self, step: str, detail: str = "") -> None:
        self._inner.finished(step, detail)

    def _check(self, step: str) -> None:
        if self._asked.is_set():
            raise Interrupted(
                "the release was told to end",
                where=step,
                remedy="Start it again: finished steps are not done twice.",
            )


@contextmanager
def interruptible() -> Iterator[None]:
    """End the flow inside at its next sign of progress once SIGINT or SIGTERM came.

    Within another such block this does nothing: the outer one asks, and both hear it.
    """
    if threading.current_thread() is not threading.main_thread() or _ASKED.get() is not None:
        yield  # signals are for the main thread's flow
        return
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            os._exit(128 + number)
        asked.set()

    before = {number: signal.signal(number, ask) for number in _SIGNALS}
    token = _ASKED.set(asked)
    try:
        with report_to(_Stopping(reporter(), asked)):
            yield
    finally:
        _ASKED.reset(token)
        for number, handler in before.items():
            signal.signal(number, handler)


def told_to_end() -> bool:
    """Whether the flow of this context was asked to end: the `cancel` of its child processes."""
    asked = _ASKED.get()
    return asked is not None and asked.is_set()
