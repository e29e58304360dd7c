"""The manifest of a data set folder, read line by line within bounds.

A line that is not as the format says becomes an `Unreadable` with a stable reason; only what makes
the whole table meaningless (no manifest, too many rows) raises.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, BinaryIO

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from validators.contracts.dataset import Unreadable
from validators.contracts.errors import TooLarge
from validators.contracts.strict_json import parse_strictly

MANIFEST_NAME = "manifest.jsonl"
MAX_LINE_BYTES = 64 * 1024
MAX_ROWS = 100_000
FILE_MODALITIES = ("image", "audio")
TRACKS = ("video", "audio", "document", "events", "sensors")
"""The tracks that a recording may have."""
TIMED = ("video", "document", "events", "sensors")
"""What makes a row a recording: `audio` alone is a plain sample."""

_TimeMs = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
_ID = re.compile(r"[^\W_][\w.\-]{0,127}")


@dataclass(frozen=True, slots=True)
class TrackSource:
    """A track of a recording: its file as written, and what the manifest says about its time.

    `start_ms` is when the track's own zero is on the recording's time base; None where the manifest
    says nothing. `page_times_ms` are when each page of a document was shown.
    """

    name: str
    file: str
    start_ms: float | None = None
    page_times_ms: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One good line: `files` are (modality, path as written), or `tracks` those of a recording."""

    line: int
    id: str
    files: tuple[tuple[str, str], ...]
    text: str | None
    captured_ms: float | None
    tags: tuple[tuple[str, str], ...]
    tracks: tuple[TrackSource, ...] = ()


def read_rows(stream: BinaryIO) -> Iterator[Row | Unreadable]:
    """Each line of the manifest as a Row or an Unreadable, in file order; blank lines are skipped.

    Raises:
        TooLarge: more than MAX_ROWS rows.
    """
    first_seen: dict[str, int] = {}
    rows = 0
    for number, line in _lines(stream):
        if line is not None and not line.strip():
            continue
        rows += 1
        if rows > MAX_ROWS:
            raise TooLarge(
                f"the manifest has more than {MAX_ROWS} rows",
                where=MANIFEST_NAME,
                remedy="Split the data set into several folders.",
            )
        row = parse_line(line, number)
        if isinstance(row, Row) and row.id in first_seen:
            detail = f"line {number} repeats the id of line {first_seen[row.id]}"
            yield Unreadable(row.id, "duplicate-id", detail)
            continue
        if isinstance(row, Row):
            first_seen[row.id] = number
        yield row


def parse_line(line: bytes | None, number: int) -> Row | Unreadable:
    """One line as a row. None stands for a line longer than MAX_LINE_BYTES."""
    if line is None:
        return _bad(number, "line-too-long", f"more than {MAX_LINE_BYTES} bytes")
    try:
        value = parse_strictly(line)
    except (ValueError, RecursionError):
        return _bad(number, "bad-line", "not one JSON object with distinct keys, in UTF-8")
    try:
        entry = _Entry.model_validate(value)
    except ValidationError as error:
        # Only the place and the kind of error: what was written there may be anyone's data.
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = str(first["loc"][0])[:40] if first["loc"] else "the row"
        known = place if place in _Entry.model_fields else "a key"
        return _bad(number, "bad-line", f"{known}: {first['type'].replace('_', ' ')}")
    return _checked(entry, number)


class _Track(BaseModel):
    """What a recording's manifest says about the time of one track."""

    model_config = ConfigDict(strict=True, extra="forbid")

    start_ms: float | None = Field(default=None, ge=-1e15, le=1e15, allow_inf_nan=False)
    page_times_ms: list[_TimeMs] = Field(default_factory=list, max_length=1000)


class _Entry(BaseModel):
    """The line as written; see validators/contracts/dataset.py for the format."""

    model_config = ConfigDict(strict=True, extra="forbid")

    id: str = Field(min_length=1, max_length=128)
    image: str | None = Field(default=None, max_length=1024)
    audio: str | None = Field(default=None, max_length=1024)
    text: str | None = None
    video: str | None = Field(default=None, max_length=1024)
    document: str | None = Field(default=None, max_length=1024)
    events: str | None = Field(default=None, max_length=1024)
    sensors: str | None = Field(default=None, max_length=1024)
    tracks: dict[str, _Track] = Field(default_factory=dict, max_length=len(TRACKS))
    captured_ms: float | None = Field(default=None, ge=0, le=1e15, allow_inf_nan=False)
    tags: dict[str, str] = Field(min_length=1, max_length=64)


def _checked(entry: _Entry, number: int) -> Row | Unreadable:
    name = unicodedata.normalize("NFC", entry.id)
    if not _ID.fullmatch(name):
        return _bad(number, "bad-id", "an id is letters, digits, '.', '_', '-', first a letter")
    timed = any(getattr(entry, track) is not None for track in TIMED)
    if timed and (entry.image is not None or entry.text is not None):
        detail = f"line {number} has an image or a text beside the tracks of a recording"
        return Unreadable(name, "mixed-row", detail)
    files = tuple(
        (modality, path)
        for modality in FILE_MODALITIES
        if not timed and (path := getattr(entry, modality)) is not None
    )
    if not timed and not files and entry.text is None:
        return Unreadable(name, "no-media", f"line {number} has no medium and no track")
    if fault := _track_fault(entry, timed=timed):
        return Unreadable(name, "bad-tracks", f"line {number}: {fault}")
    if any(len(key) > 64 or len(value) > 256 for key, value in entry.tags.items()):
        return Unreadable(name, "bad-tags", f"line {number} has a tag longer than 256 characters")
    tags = tuple(sorted((_nfc(key), _nfc(value)) for key, value in entry.tags.items()))
    tracks = _tracks(entry) if timed else ()
    return Row(number, name, files, entry.text, entry.captured_ms, tags, tracks)


def _track_fault(entry: _Entry, *, timed: bool) -> str | None:
    """What is wrong with what the row says about its tracks."""
    for track, said in entry.tracks.items():
        if not timed or _file_of(entry, track) is None:
            return "tracks speaks of one that the row does not have"
        times = said.page_times_ms
        if times and (track != "document" or times != sorted(times)):
            return "page_times_ms are those of a document, and do not go back"
    return None


def _tracks(entry: _Entry) -> tuple[TrackSource, ...]:
    return tuple(
        TrackSource(track, path, said.start_ms, tuple(said.page_times_ms))
        for track in TRACKS
        if (path := _file_of(entry, track)) is not None
        and (track in entry.tracks or getattr(entry, track) is not None)
        for said in (entry.tracks.get(track, _Track()),)
    )


def _file_of(entry: _Entry, track: str) -> str | None:
    """The file of a track; a video without a recording beside it brings its own sound."""
    if track not in TRACKS:
        return None
    path: str | None = getattr(entry, track)
    return entry.video if path is None and track == "audio" else path


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """(line number, line), with None for a line over the bound: it is skipped to its end."""
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) <= MAX_LINE_BYTES:
            yield number, line
            continue
        while not line.endswith(b"\n"):
            line = stream.readline(MAX_LINE_BYTES)
            if not line:
                break
        yield number, None


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _bad(number: int, reason: str, detail: str) -> Unreadable:
    return Unreadable(f"line-{number}", reason, f"line {number}: {detail}")
