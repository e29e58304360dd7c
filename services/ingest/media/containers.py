"""Media containers through PyAV (FFmpeg), with nothing reachable but the one open file.

The demuxer is chosen here by the file's first bytes and forced, so that no playlist, image
sequence, script or network demuxer is ever tried; data comes through a view of the checked
descriptor, not by a name; a container that asks for another file is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import av
from av.container import InputContainer
from av.error import FFmpegError

from services.ingest.media.completeness import missing_bytes
from services.ingest.media.sources import MediaFile
from validators.contracts.errors import BadInput, TooLarge, Unsupported

DEMUXERS = {
    "mov": "mov,mp4,m4a,3gp,3g2,mj2",
    "matroska": "matroska,webm",
    "avi": "avi",
    "ogg": "ogg",
}
"""Our name to FFmpeg's."""

VIDEO_CODECS = frozenset((
    "h264", "hevc", "vp8", "vp9", "av1", "libdav1d", "mpeg4", "mjpeg", "theora", "libvpx",
    "libvpx-vp9",
))  # fmt: skip
AUDIO_CODECS = frozenset((
    "aac", "mp3", "mp3float", "opus", "libopus", "vorbis", "flac", "alac", "pcm_s16le",
    "pcm_s16be", "pcm_s24le", "pcm_s24be", "pcm_s32le", "pcm_f32le", "pcm_u8", "pcm_mulaw",
    "pcm_alaw",
))  # fmt: skip

_IO_BYTES = 256 * 1024
_PROBE_BYTES = 8 * 1024**2
_MAX_STREAMS = 64
_MOV_BOXES = frozenset((b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot"))


def sniff(head: bytes) -> str | None:
    """The name of the demuxer for a file that begins so; None where none here reads it."""
    if head[4:8] in _MOV_BOXES:
        return "mov"
    if head.startswith(b"\x1a\x45\xdf\xa3"):
        return "matroska"
    if head.startswith(b"RIFF") and head[8:12] == b"AVI ":
        return "avi"
    if head.startswith(b"OggS"):
        return "ogg"
    return None


@contextmanager
def open_container(file: MediaFile) -> Iterator[InputContainer]:
    """The container, for one pass.

    Raises:
        Unsupported: no demuxer here reads it.  TooLarge: too many streams.
        BadInput: damaged, or cut short before its tables.
    """
    demuxer = require_demuxer(file)
    options = {
        "format_whitelist": DEMUXERS[demuxer],
        "codec_whitelist": ",".join(sorted(VIDEO_CODECS | AUDIO_CODECS)),
        "protocol_whitelist": "",
        "probesize": str(_PROBE_BYTES),
        "max_streams": str(_MAX_STREAMS),
    }
    with file.view() as view:
        with reading(file.name, f"the {demuxer} container cannot be opened{_cut(file, demuxer)}"):
            container = av.open(
                view, "r", format=demuxer, options=options, buffer_size=_IO_BYTES,
                metadata_errors="replace", io_open=_refuse_more,
            )  # fmt: skip
        try:
            yield container
        finally:
            container.close()


def require_demuxer(file: MediaFile) -> str:
    """Raises: Unsupported."""
    demuxer = sniff(file.head(16))
    if demuxer is None:
        raise Unsupported(
            "the file is no container that is read here",
            where=file.name,
            remedy="Give MP4, MOV, Matroska, WebM, AVI or Ogg.",
        )
    return demuxer


def bytes_missing(file: MediaFile) -> int:
    """How many bytes the container declares that the file does not have."""
    with file.view() as view:
        return missing_bytes(view, require_demuxer(file), file.size_bytes)


@contextmanager
def reading(where: str, what: str) -> Iterator[None]:
    """What FFmpeg raises inside, as BadInput: its own words may quote the file, ours do not."""
    try:
        yield
    except MemoryError as error:
        raise TooLarge(
            f"{what}: it asks for more memory than there is", where=where,
            remedy="Export the recording again with an ordinary encoder.",
        ) from error  # fmt: skip
    except (FFmpegError, ValueError, OverflowError, ZeroDivisionError) as error:
        raise BadInput(
            f"{what} ({type(error).__name__})", where=where,
            remedy="Record or export it again, or give the whole file.",
        ) from error  # fmt: skip


def milliseconds(ticks: int, time_base: Fraction) -> float:
    """A container's time in ms, rounded once."""
    return float(ticks * time_base * 1000)


def _cut(file: MediaFile, demuxer: str) -> str:
    with file.view() as view:
        missing = missing_bytes(view, demuxer, file.size_bytes)
    return f": {missing} bytes are missing at its end" if missing else ""


def _refuse_more(*_: Any) -> Any:
    raise PermissionError("a container may not open another file")
