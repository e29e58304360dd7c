"""Files that survive what kills their writer: staged, flushed, renamed, and locked.

A staged file lives under a temporary name and is held by a `flock` until it is whole; the kernel
drops the lock with its holder, however that died. So whoever can take the lock of a leftover
knows that nobody writes it any more, and may remove it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from validators.contracts.errors import DiskFull, ModalgateError, Refused, Unavailable

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
SUFFIX = ".part"

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def make_private_folder(path: Path) -> None:
    """Create a folder (0700) and its missing parents, flushed; what exists stays as it is."""
    if path.is_dir():
        return
    make_private_folder(path.parent)
    try:
        path.mkdir(mode=PRIVATE_FOLDER)
    except FileExistsError:  # another process was first, or something else has the name
        if not path.is_dir():
            raise
    flush_folder(path.parent)


def flush_folder(path: Path) -> None:
    """Make the names in a folder durable: a rename is lost with the power until this returns."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file being written under a temporary name; `handle` is open for writing, and locked."""

    path: Path
    handle: int

    def write(self, data: bytes | memoryview) -> None:
        write_all(self.handle, data)

    def publish(self, destination: Path) -> None:
        """Flush, and give the file its final name in one step, replacing what was there."""
        os.fsync(self.handle)
        self.path.replace(destination)
        flush_folder(destination.parent)

    def publish_new(self, destination: Path) -> bool:
        """As `publish`, but False (and nothing changed) where the name is taken."""
        os.fsync(self.handle)
        try:
            os.link(self.path, destination)
        except FileExistsError:
            return False
        flush_folder(destination.parent)
        return True


@contextlib.contextmanager
def stage(folder: Path, label: str = "") -> Iterator[StagedFile]:
    """A new staged file (0600) in `folder`; removed on leaving unless it was published."""
    staged = _create(folder, label)
    try:
        yield staged
    finally:
        with contextlib.suppress(OSError):
            staged.path.unlink()
        os.close(staged.handle)


def write_atomically(destination: Path, data: bytes) -> None:
    """Replace a file's content, whole or not at all, durable on return."""
    sweep(destination.parent, destination.name)
    with stage(destination.parent, destination.name) as staged:
        staged.write(data)
        staged.publish(destination)


def write_all(handle: int, data: bytes | memoryview) -> None:
    """Write every byte: the system may take fewer at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def append_durably(path: Path, data: bytes) -> int:
    """Add to the end of a file (made 0600), durable on return; a full disk leaves it as it was.

    The caller holds a lock: two writers would cut each other's work.

    Returns: the size before, to which the caller may cut the file again.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(path, flags, PRIVATE_FILE)
    try:
        before = os.fstat(handle).st_size
        try:
            write_all(handle, data)
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, before)
            raise
    finally:
        os.close(handle)
    if before == 0:
        flush_folder(path.parent)
    return before


def sweep(folder: Path, label: str | None = None) -> int:
    """Remove staged files (of one label) whose writers are gone; those of a live writer stay.

    Returns: how many were removed.
    """
    removed = 0
    pattern = "" if label is None else f"{glob.escape(label)}."
    for path in folder.glob(f".{pattern}*{SUFFIX}"):
        with contextlib.suppress(FileNotFoundError, BlockingIOError):
            handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
                removed += 1
            finally:
                os.close(handle)
    return removed


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock between processes and threads; waits for whoever has it.

    The lock file stays: removing it would let two holders lock two files of one name.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        # Said aloud, because a forked child may still hold a copy of the handle.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


@contextlib.contextmanager
def disk_faults(thing: str, where: str, remedy: str) -> Iterator[None]:
    """Turn an operating system's refusal into Unavailable with what to do about it."""
    try:
        yield
    except ModalgateError:
        raise
    except OSError as error:
        raise disk_fault(error, thing, where, remedy) from error


def disk_fault(error: OSError, thing: str, where: str, remedy: str) -> ModalgateError:
    """The error to raise for an OSError met while using `thing`."""
    if error.errno in _FULL:
        return DiskFull(
            f"the disk of {thing} is full or over its quota",
            where=where,
            remedy="Free space there (or raise the quota) and run the command again.",
        )
    if error.errno == errno.ELOOP:
        return Refused(
            f"{thing} holds a symbolic link where a file should be",
            where=where,
            remedy="Remove the link: files there are written by this program only.",
        )
    reason = os.strerror(error.errno) if error.errno else type(error).__name__
    return Unavailable(f"{thing} cannot be used: {reason}", where=where, remedy=remedy)


def _create(folder: Path, label: str) -> StagedFile:
    """Create and lock; a sweeper that came between the two has unlinked it, so look again."""
    while True:
        path = folder / f".{label}.{os.getpid()}-{secrets.token_hex(8)}{SUFFIX}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(path, flags, PRIVATE_FILE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            kept = os.fstat(handle).st_nlink > 0
        except BaseException:
            os.close(handle)
            raise
        if kept:
            return StagedFile(path, handle)
        os.close(handle)
