"""The page of the data folder says what ingest does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from services.fusion.training import MINIMUM_PAIRS
from services.ingest.manifest import MAX_LINE_BYTES, MAX_ROWS, TRACKS, Row, parse_line
from services.ingest.media.limits import MediaLimits
from services.ingest.normalise import MAX_SIDE_PX, MAX_TEXT_CHARACTERS
from services.ingest.recording.frames import MAX_SAMPLES
from services.ingest.recording.reading import MAX_TEXT_BYTES
from services.ingest.recording.ticking import MAX_TICKS
from services.ingest.timebase.rule import TARGETS
from services.preprocess import media
from validators.lineage.summary import REQUIRED_TAGS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "data-folder.md").read_text()
MIB = 1024 * 1024
MEDIA = MediaLimits()
CAUSES = ("start-offset", "clock-rate", "step", "gap", "burst", "reordered", "impossible")


def test_its_sample_line_is_read_and_complete() -> None:
    line, _ = re.findall(r"```json\n(.*)\n```", PAGE)
    row = parse_line(line.encode(), 1)
    assert isinstance(row, Row)
    assert [modality for modality, _ in row.files] == ["image", "audio"]
    assert row.text
    assert row.captured_ms
    assert {name for name, _ in row.tags} == {*REQUIRED_TAGS, "split"}


def test_its_sample_recording_is_read_and_has_every_track() -> None:
    _, line = re.findall(r"```json\n(.*)\n```", PAGE)
    row = parse_line(line.encode(), 1)
    assert isinstance(row, Row)
    assert [track.name for track in row.tracks] == list(TRACKS)
    assert {track.name: track.start_ms for track in row.tracks}["audio"] == 128


NEVER = {
    "unsupported-text",  # a text has no type of its own
    "video-out-of-step", "document-out-of-step", "events-out-of-step",  # the reference; no clock
    "video-outside-recording",
    "document-gap", "events-gap",  # nothing is due
    "audio-impossible-times", "document-impossible-times",
    "corrupt-recording", "unsupported-recording",
}  # fmt: skip
"""What the code's patterns could spell and never give."""


def reasons() -> set[str]:
    """Every reason that the code of ingest gives."""
    code = "".join(path.read_text() for path in (ROOT / "services" / "ingest").rglob("*.py"))
    given = re.findall(r'(?:FileRefused\(\s*|Unreadable\([\w.]+, |_bad\(number, )f?"([^"]+)"', code)
    filled = {"modality": ("image", "audio", "text"), "track": (*TRACKS, "recording")}
    filled |= {"track.name": TRACKS, "source.name": TRACKS, "name": TRACKS}
    found = {reason for reason in given if "{" not in reason}
    for reason in given:
        for place, names in filled.items():
            if f"{{{place}}}" in reason:
                found |= {reason.replace(f"{{{place}}}", name) for name in names}
    assert len(found) > 40
    return found - NEVER


def test_every_reason_of_an_unreadable_row_is_explained_and_no_other() -> None:
    table = PAGE.split("## Rows that cannot be read")[1].split("|---|---|")[1]
    named = {
        reason
        for row in table.strip().splitlines()
        for reason in re.findall(r"`([a-z-]+)`", row.split("|")[1])
    }
    assert named == reasons()


@pytest.mark.parametrize(
    "said",
    [
        f"{media.MAX_IMAGE_BYTES // MIB} MiB, {media.MAX_IMAGE_PIXELS // 10**6} million pixels",
        f"{media.MAX_AUDIO_BYTES // MIB} MiB, {media.MAX_AUDIO_S:g} seconds",
        f"{media.MAX_CHANNELS} channels at most",
        f"{MAX_SIDE_PX} pixels a side",
        f"{MAX_TEXT_CHARACTERS:,} characters",
        f"{MAX_LINE_BYTES:,} bytes",
        f"{MAX_ROWS:,} lines",
        f"{MAX_SAMPLES:,} samples, {MAX_TICKS // 10**6} million ticks",
        f"{MEDIA.file_bytes // 1024**3} GiB, {MEDIA.duration_ms / 3.6e6:g} hours, a million frames",
        f"{MEDIA.document_bytes // MIB} MiB, {MEDIA.pages} pages",
        f"{MEDIA.lines // 10**6} million lines, {MAX_TEXT_BYTES // MIB} MiB of text, "
        f"{MEDIA.channels} channels",
        *(f"`{name}`" for name in CAUSES),
        *(
            f"{target.rate_hz} | {target.tolerance_ms} ms"
            for name, target in TARGETS.items()
            if name != "document"
        ),
        f"{MINIMUM_PAIRS} with the modality and a text",
    ],
)
def test_its_bounds_are_those_of_the_code(said: str) -> None:
    assert said in PAGE
