"""The page of the data folder says what ingest does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from services.fusion.training import MINIMUM_PAIRS
from services.ingest.manifest import MAX_LINE_BYTES, MAX_ROWS, Row, parse_line
from services.ingest.normalise import MAX_SIDE_PX, MAX_TEXT_CHARACTERS
from services.preprocess import media
from validators.lineage.summary import REQUIRED_TAGS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "data-folder.md").read_text()
MIB = 1024 * 1024


def test_its_sample_line_is_read_and_complete() -> None:
    (line,) = re.findall(r"```json\n(.*)\n```", PAGE)
    row = parse_line(line.encode(), 1)
    assert isinstance(row, Row)
    assert [modality for modality, _ in row.files] == ["image", "audio"]
    assert row.text
    assert row.captured_ms
    assert {name for name, _ in row.tags} == {*REQUIRED_TAGS, "split"}


def reasons() -> set[str]:
    """Every reason that the code of ingest gives."""
    code = "".join(path.read_text() for path in (ROOT / "services" / "ingest").glob("*.py"))
    given = re.findall(r'(?:FileRefused\(|Unreadable\([\w.]+, |_bad\(number, )f?"([^"]+)"', code)
    found = {
        reason.replace("{modality}", modality)
        for reason in given
        for modality in ("image", "audio", "text")
    }
    assert len(found) > 20
    return found - {"unsupported-text"}  # a text has no type of its own


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
        f"{MINIMUM_PAIRS} with the modality and a text",
    ],
)
def test_its_bounds_are_those_of_the_code(said: str) -> None:
    assert said in PAGE
