"""A stranger's file, opened once and checked: a regular file within its bound.

Several decoders may read one file at once: each takes a `view` with a place of its own. A view
never reads beyond the size that was checked, also where the file grows meanwhile.
"""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Self

from validators.contracts.errors import BadInput, NotFound, TooLarge


class MediaFile:
    """An open descriptor with its size. `name` stands for the file in errors: an id, not a path."""

    def __init__(self, descriptor: int, name: str, size_bytes: int) -> None:
        self.descriptor = descriptor
        self.name = name
        self.size_bytes = size_bytes

    @classmethod
    def open(cls, path: Path, *, name: str = "", limit_bytes: int) -> MediaFile:
        """Raises: NotFound, BadInput (no regular file, empty, may not be read), TooLarge."""
        where = name or path.name
        try:
            # O_NONBLOCK: a named pipe must not hold the reader up before it is seen to be one.
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise NotFound("the file does not exist", where=where) from error
        except OSError as error:
            raise BadInput(
                f"the file cannot be opened: {os.strerror(error.errno or 0)}", where=where,
                remedy="Give a regular file that may be read, not a link.",
            ) from error  # fmt: skip
        return cls.adopt(descriptor, name=where, limit_bytes=limit_bytes)

    @classmethod
    def adopt(cls, descriptor: int, *, name: str, limit_bytes: int) -> MediaFile:
        """Take over an open descriptor, and close it with the file. Raises as `open`."""
        try:
            status = os.fstat(descriptor)
            _check(status, name, limit_bytes)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor, name, status.st_size)

    def view(self) -> io.BufferedReader:
        """The file from its start, with a place of its own."""
        return io.BufferedReader(_View(self.descriptor, self.size_bytes), 64 * 1024)

    def head(self, size: int) -> bytes:
        """Its first bytes."""
        return os.pread(self.descriptor, min(size, self.size_bytes), 0)

    def close(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _check(status: os.stat_result, name: str, limit_bytes: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise BadInput("this is no regular file", where=name, remedy="Give a regular file.")
    if not status.st_size:
        raise BadInput("the file is empty", where=name, remedy="Record or export it again.")
    if status.st_size > limit_bytes:
        raise TooLarge(
            f"the file has {status.st_size} bytes, more than {limit_bytes}",
            where=name,
            remedy="Split the recording, or raise the limit.",
        )


class _View(io.RawIOBase):
    """Reads by position: views of one descriptor do not move each other."""

    def __init__(self, descriptor: int, size_bytes: int) -> None:
        self._descriptor = descriptor
        self._size_bytes = size_bytes
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size_bytes}[whence]
        if base + offset < 0:
            raise OSError("a place before the start")
        self._at = base + offset
        return self._at

    def readinto(self, buffer: object) -> int:
        target = memoryview(buffer).cast("B")  # type: ignore[arg-type]  # a writable buffer
        wanted = max(0, min(len(target), self._size_bytes - self._at))
        count = os.preadv(self._descriptor, [target[:wanted]], self._at) if wanted else 0
        self._at += count
        return count
