"""What a builder says of its builds: each fault once, in a log that does not grow for ever."""

from __future__ import annotations

import logging
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

MAX_LOG_BYTES = 256 * 1024
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"
_LINE_CHARACTERS = 500
_TAIL_BYTES = 8192

_log = logging.getLogger("builder")


class _Error(msgspec.Struct):
    what: str = ""
    where: str = ""
    remedy: str = ""


class _Build(msgspec.Struct):
    service: str
    encoder: str
    state: str
    message: str = ""


class _Answer(msgspec.Struct):
    """The document of `modalgate engines build --json`, as far as it matters here."""

    builds: list[_Build] = []
    error: _Error | None = None


class Diary:
    """Writes down what was not said the last time. Standard error is the log, which starts anew."""

    def __init__(self) -> None:
        self._said: tuple[str, ...] = ()

    def tell(self, faults: Sequence[str]) -> None:
        """The faults of one look; none at all forgets the last ones."""
        new = [fault for fault in faults if fault not in self._said]
        self._said = tuple(faults)
        for fault in new:
            _start_anew_where_large(sys.stderr.fileno())
            _log.warning("%s", fault)


def said_by(code: int, answer: bytes, complaints: bytes) -> list[str]:
    """What went wrong in a build process, from its document or else from its last words."""
    try:
        document = msgspec.json.decode(answer, type=_Answer)
    except msgspec.MsgspecError:
        lines = complaints.decode(errors="replace").strip().splitlines()
        return [_line(f"a build ended with code {code}: {lines[-1] if lines else 'no word'}")]
    faults = [
        _line(f"{build.service} {build.encoder} is {build.state}: {build.message}")
        for build in document.builds
        if build.message
    ]
    if document.error is not None and not faults:
        error = document.error
        faults = [_line(f"{error.what} ({error.where}). {error.remedy}")]
    return faults


def last_line(log: Path) -> str:
    """The last line of a builder's log; nothing where there is none."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            lines = stream.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return _line(lines[-1]) if lines else ""


def _line(text: str) -> str:
    return " ".join(text.split())[:_LINE_CHARACTERS]


def _start_anew_where_large(handle: int) -> None:
    """What spawned us opened it for appending, so that the next line is its first."""
    found = os.fstat(handle)
    if stat.S_ISREG(found.st_mode) and found.st_size > MAX_LOG_BYTES:
        os.ftruncate(handle, 0)
