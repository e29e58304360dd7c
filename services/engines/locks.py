"""One builder per key on this machine: an advisory lock on a file, freed with its process."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services.children.errors import BuildCancelled
from services.children.process import Cancel
from validators.contracts.digest import Digest, hex_of, short

_LOOK_AGAIN_S = 0.2


@contextmanager
def key_lock(locks: Path, key: Digest, cancel: Cancel | None = None) -> Iterator[None]:
    """Hold the key's lock; wait for whoever has it, in this process or another.

    The file stays: removing it would let two holders each lock a file of that name.

    Raises:
        BuildCancelled: the caller cancelled while waiting.
    """
    locks.mkdir(parents=True, exist_ok=True)
    pause = threading.Event()
    with (locks / f"{hex_of(key)}.lock").open("ab") as handle:
        while not _try_lock(handle.fileno()):
            if cancel is not None and cancel():
                raise BuildCancelled(
                    "cancelled while another builder held the key", where=short(key)
                )
            pause.wait(_LOOK_AGAIN_S)
        yield  # closing the file frees the lock


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
