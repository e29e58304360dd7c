"""Reading files by the names a stranger wrote, without leaving the folder.

A name may not be absolute, may not climb, and may not reach outside through a symbolic link. What
is opened is a regular file and no larger than its bound, checked on the open descriptor.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

from validators.contracts.errors import ModalgateError


class FileRefused(ModalgateError):
    """A file of the manifest that is not read. `reason` is a stable code."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def read_inside(folder: Path, name: str, limit_bytes: int) -> bytes:
    """The bytes of `folder/name`.

    Raises:
        FileRefused: path-outside-folder, missing-file, not-a-file, file-too-large, unreadable-file.
    """
    descriptor = open_inside(folder, name)
    try:
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            data = stream.read(limit_bytes + 1)
    finally:
        os.close(descriptor)
    if len(data) > limit_bytes:
        raise FileRefused("file-too-large", f"a file has more than {limit_bytes} bytes")
    return data


def open_inside(folder: Path, name: str) -> int:
    """A descriptor of `folder/name`, a regular file; the caller closes it.

    Raises:
        FileRefused: path-outside-folder, missing-file, not-a-file, unreadable-file.
    """
    path = _resolve(folder, name)
    try:
        # O_NONBLOCK: a named pipe must not hold the reader up before it is recognised as one.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise FileRefused("missing-file", "a file of the manifest is not in the folder") from error
    except OSError as error:
        raise FileRefused("unreadable-file", os.strerror(error.errno or 0)) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileRefused("not-a-file", "a name of the manifest is no regular file")
    return descriptor


def _resolve(folder: Path, name: str) -> Path:
    written = PurePosixPath(name)
    outside = FileRefused("path-outside-folder", "a path leads out of the data set's folder")
    if not name or "\0" in name or "\\" in name or written.is_absolute() or ".." in written.parts:
        raise outside
    root = folder.resolve()
    try:
        resolved = (root / written).resolve()
    except (OSError, RuntimeError) as error:  # a loop of links, a name too long
        raise FileRefused("unreadable-file", "a path cannot be resolved") from error
    if not resolved.is_relative_to(root):
        raise outside
    return resolved
