"""Scratch folders that disappear with their owner, even when it is killed."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "scratch-"
_ALIVE = ".alive"


@contextmanager
def scratch(workdir: Path) -> Iterator[Path]:
    """A private folder under `workdir`, removed at the end; folders of dead owners go first.

    The owner holds a lock on a file inside: the system frees it with the process, so a folder whose
    lock is free belongs to nobody.
    """
    workdir.mkdir(parents=True, exist_ok=True)
    with (workdir / f"{_PREFIX}lock").open("ab") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)  # short: sweep, make, lock
        _sweep(workdir)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=workdir))
        alive = (folder / _ALIVE).open("ab")
        fcntl.flock(alive, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        alive.close()


def _sweep(workdir: Path) -> None:
    for folder in workdir.glob(f"{_PREFIX}*"):
        if folder.is_dir() and not folder.is_symlink() and _abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _abandoned(folder: Path) -> bool:
    try:
        with (folder / _ALIVE).open("ab") as alive:
            fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
