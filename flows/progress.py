"""How a flow says what it is doing, without knowing who is looking."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Reporter(Protocol):
    """Receives the life of named steps. All calls come from the flow's thread."""

    def started(self, step: str, detail: str = "") -> None: ...
    def advanced(self, step: str, done: int, total: int, detail: str = "") -> None: ...
    def finished(self, step: str, detail: str = "") -> None: ...


class Silent:
    """Says nothing: scheduled runs, tests, `--json`."""

    def started(self, step: str, detail: str = "") -> None:
        """Ignore."""

    def advanced(self, step: str, done: int, total: int, detail: str = "") -> None:
        """Ignore."""

    def finished(self, step: str, detail: str = "") -> None:
        """Ignore."""


_REPORTER: ContextVar[Reporter] = ContextVar("reporter", default=Silent())  # noqa: B039 stateless


def reporter() -> Reporter:
    """The reporter of this context."""
    return _REPORTER.get()


@contextmanager
def report_to(target: Reporter) -> Iterator[None]:
    """Send the progress of everything inside to `target`."""
    token = _REPORTER.set(target)
    try:
        yield
    finally:
        _REPORTER.reset(token)
