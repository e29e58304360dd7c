"""Locks between processes that the kernel drops when their holder dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from validators.contracts.errors import Conflict

_LOOK_EVERY_S = 0.2


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


@contextmanager
def shared(path: Path) -> Iterator[None]:
    """Hold the lock together with others who share it, waiting for one who has it alone."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


@contextmanager
def one_of(*places: Path) -> Iterator[None]:
    """Hold one of several places, waiting until one is free.

    A limit that survives its holders: a place is free the moment the process that had it is gone.
    """
    handles = [os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600) for path in places]
    try:
        while not any(_taken(handle) for handle in handles):
            time.sleep(_LOOK_EVERY_S)
        yield
    finally:
        for handle in handles:
            os.close(handle)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
