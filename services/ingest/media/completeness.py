"""Whether a file is as long as it says: read from its outermost boxes, without decoding.

Demuxers end at the last byte without a word when a copy was cut short: only declared sizes tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

_MAX_BOXES = 100_000
_OGG_TAIL_BYTES = 64 * 1024 + 512  # a page's greatest size, so that one begins in it
_OGG_LAST = 0x04
_EBML_SEGMENT = 0x18538067


def missing_bytes(stream: BinaryIO, demuxer: str, size_bytes: int) -> int:
    """How many bytes the file is shorter than it declares; 0 also where it does not say.

    `demuxer` is a name of `containers.DEMUXERS`, or "wav". For Ogg, 1 stands for a last page that
    is not marked as the last.
    """
    find = _FIND.get(demuxer)
    return max(0, find(stream, size_bytes) - size_bytes) if find else 0


def _end_of_mov(stream: BinaryIO, size_bytes: int) -> int:
    """ISO/IEC 14496-12, 4.2: size 1 means a 64-bit size follows, 0 that the box is the last."""
    at = 0
    for _ in range(_MAX_BOXES):
        if at >= size_bytes:
            return at
        if at + 8 > size_bytes:
            return at + 8
        stream.seek(at)
        head = stream.read(16)
        size = int.from_bytes(head[:4], "big")
        if size == 1 and len(head) == 16:
            size = int.from_bytes(head[8:16], "big")
        if size < 8:
            return size_bytes
        at += size
    return size_bytes


def _end_of_riff(stream: BinaryIO, size_bytes: int) -> int:
    """Chunks of RIFF, several in large AVI files (OpenDML 2.0); each padded to an even size."""
    at = 0
    for _ in range(_MAX_BOXES):
        stream.seek(at)
        head = stream.read(8)
        if len(head) < 8 or head[:4] != b"RIFF":
            return at
        size = int.from_bytes(head[4:8], "little")
        if size in (0, 0xFFFFFFFF):  # written by what could not go back to fill it in
            return size_bytes
        at += 8 + size
        if at >= size_bytes:
            return at
        at += size % 2
    return size_bytes


def _end_of_matroska(stream: BinaryIO, size_bytes: int) -> int:
    """RFC 8794: the EBML head, then the Segment, whose size may be unknown (all ones)."""
    stream.seek(0)
    head = stream.read(4096)
    at = 0
    for _ in range(8):
        identity, at = _ebml_number(head, at, keep_marker=True)
        size, at = _ebml_number(head, at, keep_marker=False)
        if identity is None or size is None:
            return size_bytes
        if identity == _EBML_SEGMENT:
            return at + size
        at += size
    return size_bytes


def _ebml_number(data: bytes, at: int, *, keep_marker: bool) -> tuple[int | None, int]:
    if at >= len(data) or not data[at]:
        return None, at
    length = 9 - data[at].bit_length()
    if at + length > len(data):
        return None, at
    number = int.from_bytes(data[at : at + length], "big")
    value = number if keep_marker else number & ((1 << 7 * length) - 1)
    unknown = not keep_marker and value == (1 << 7 * length) - 1
    return (None if unknown else value), at + length


def _end_of_ogg(stream: BinaryIO, size_bytes: int) -> int:
    """RFC 3533, 6: the last page of a stream has the flag 0x04, and ends the file."""
    start = max(0, size_bytes - _OGG_TAIL_BYTES)
    stream.seek(start)
    tail = stream.read(_OGG_TAIL_BYTES)
    at = tail.rfind(b"OggS")
    if at < 0 or at + 27 > len(tail):
        return size_bytes + 1
    count = tail[at + 26]
    table = tail[at + 27 : at + 27 + count]
    end = start + at + 27 + count + sum(table)
    last = bool(tail[at + 5] & _OGG_LAST) and len(table) == count
    return max(end, size_bytes if last else size_bytes + 1)


_FIND: dict[str, Callable[[BinaryIO, int], int]] = {
    "mov": _end_of_mov,
    "avi": _end_of_riff,
    "wav": _end_of_riff,
    "matroska": _end_of_matroska,
    "ogg": _end_of_ogg,
}
