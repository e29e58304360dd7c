"""Bytes on their way in and out of a store, digested as they pass; and the words for trouble."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from infra import files
from validators.contracts.digest import Digest, require_digest, short
from validators.contracts.errors import BadInput, Conflict, NotFound, Refused, TooLarge

MAX_GET_BYTES = 1 << 30
CHUNK_BYTES = 1 << 20
MAX_REFERENCE_BYTES = 256


def require_gettable(digest: Digest, size_bytes: int) -> None:
    """TooLarge where an object should not be read into memory at once."""
    if size_bytes > MAX_GET_BYTES:
        raise TooLarge(
            f"the object has {size_bytes} bytes, over the {MAX_GET_BYTES} that are read at once",
            where=digest,
            remedy="Fetch it to a file.",
        )


def absent(digest: Digest, where: str) -> NotFound:
    return NotFound(
        f"there is no object {short(digest)}",
        where=where,
        remedy=f"Store it again from its source, or name another: {digest}.",
    )


def damaged(digest: Digest, where: str) -> Refused:
    return Refused(
        f"the stored bytes of {short(digest)} no longer match their name",
        where=where,
        remedy="Store the object again from its source: that replaces the damaged one.",
    )


def moved(name: str, expected: Digest | None, found: Digest | None) -> Conflict:
    return Conflict(
        f"the reference points to {short(found) if found else 'nothing'}, "
        f"not to {short(expected) if expected else 'nothing'}",
        where=name,
        remedy="Read it again and decide anew.",
    )


def parse_reference(data: bytes, name: str) -> Digest:
    try:
        return require_digest(data.decode("ascii"))
    except (BadInput, UnicodeDecodeError) as error:
        raise Refused(
            "the reference does not hold a digest",
            where=name,
            remedy="Delete the reference and set it again.",
        ) from error


def fetch_checked(stream: BinaryIO, digest: Digest, destination: Path, where: str) -> None:
    """Copy a stream to a file (0600), which appears only if its bytes match the digest."""
    folder = destination.absolute().parent
    remedy = "Choose a folder that this user may write."
    with files.disk_faults("the destination", str(destination), remedy):
        files.make_private_folder(folder)
        files.sweep(folder, destination.name)
        with files.stage(folder, destination.name) as staged:
            if copy(stream, staged.write) != digest:
                raise damaged(digest, where)
            staged.publish(destination.absolute())


@contextlib.contextmanager
def source_file(path: Path) -> Iterator[BinaryIO]:
    """A regular file opened for reading; NotFound where it is not one."""
    remedy = "Name an existing file that this user may read."
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise NotFound("this is not a regular file", where=str(path), remedy=remedy)
        stream = path.open("rb")
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise NotFound(
            f"the file cannot be read: {reason}", where=str(path), remedy=remedy
        ) from error
    with stream:
        yield stream


def digest_of(stream: BinaryIO) -> Digest:
    return copy(stream, lambda chunk: None)


def copy(stream: BinaryIO, write: Callable[[bytes], object]) -> Digest:
    """Pass a stream on in chunks, and the digest of what was passed."""
    hasher = hashlib.sha256()
    while chunk := stream.read(CHUNK_BYTES):
        write(chunk)
        hasher.update(chunk)
    return Digest("sha256:" + hasher.hexdigest())
