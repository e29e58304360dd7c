"""Memory does not grow with the length of what is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile

from services.ingest.media import Form
from services.ingest.media.opening import open_tracks
from services.ingest.tracks import Item
from tests.services.ingest.media.recordings import (
    draw_page,
    make_video,
    opened,
    scan_to_pdf,
    tone,
    write_pdf,
    write_text,
)

pytestmark = pytest.mark.heavy

GROWTH_BYTES = 48 * 1024**2


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def growth(items: Iterator[Item], warm: int) -> tuple[int, int]:
    """Items read, and by how much memory grew at most after the first `warm` of them."""
    start = most = count = 0
    for _ in items:
        count += 1
        if count == warm:
            start = resident_bytes()
        if count > warm and count % 50 == 0:
            most = max(most, resident_bytes())
    return count, most - start


def test_over_ten_minutes_of_video(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", range(0, 600_000, 40), size=(320, 240))
    (track,) = open_tracks(opened(path), "video")
    count, grown = growth(track.items(), 500)
    assert count == 15_000
    assert grown < GROWTH_BYTES


@pytest.mark.parametrize("form", ["mfcc", "samples"])
def test_over_two_hours_of_audio(tmp_path: Path, form: str) -> None:
    minute = (tone(60, 44_100) * 32_000).astype(np.int16)
    with soundfile.SoundFile(tmp_path / "a.flac", "w", 44_100, 1) as out:
        for _ in range(120):
            out.write(minute)
    (track,) = open_tracks(opened(tmp_path / "a.flac"), "audio", None, Form(audio=form))
    count, grown = growth(track.items(), 1000)
    assert count == {"mfcc": 720_000, "samples": 72_000}[form]
    assert grown < GROWTH_BYTES


def test_over_forty_scanned_pages(tmp_path: Path) -> None:
    pages = [draw_page([(60, 60, f"scanned page {at}")]) for at in range(60)]
    (track,) = open_tracks(opened(scan_to_pdf(tmp_path / "a.pdf", pages)), "document")
    count, grown = growth(track.items(), 10)
    assert count >= 59
    assert grown < GROWTH_BYTES


def test_over_five_hundred_pages_of_text(tmp_path: Path) -> None:
    lines = [(72, 20 + 20 * at, f"line {at} of a page") for at in range(40)]
    (track,) = open_tracks(
        opened(write_pdf(tmp_path / "a.pdf", [write_text(lines)] * 500)), "document"
    )
    count, grown = growth(track.items(), 2000)
    assert count == 20_000
    assert grown < GROWTH_BYTES
