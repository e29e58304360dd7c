"""Locks between processes that the kernel drops when their holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from validators.contracts.errors import Conflict


@contextmanager
def exclusive(path: Path, what: str) -> Iterator[None]:
    """Hold the lock, or raise Conflict at once where another process holds it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(
                f"{what} is running in another process already",
                where=str(path),
                remedy="Wait for it to end, or stop it.",
            ) from None
        yield
    finally:
        os.close(handle)
