"""Damaged files, cut and with bits flipped: an error that names the place, never a crash of this
process, a hang, or items in the wrong order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import soundfile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.ingest.media import Decoders, Form, MediaLimits, MediaTrack
from tests.services.ingest.media.recordings import (
    draw_page,
    make_film,
    make_video,
    opened,
    tone,
    write_pdf,
    write_text,
)
from tests.services.ingest.media.test_sensors import reading, write
from validators.contracts.errors import BadInput

TIMES = list(range(0, 800, 40))


def _wav(path: Path) -> Path:
    soundfile.write(path, tone(0.5, 44_100), 44_100)
    return path


def _png(path: Path) -> Path:
    draw_page([(10, 10, "x")], size=(120, 60)).save(path)
    return path


MAKE: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "a.mp4": ("video", lambda path: make_film(path, audio_codec="aac", seconds=0.7)),
    "a.mkv": ("video", lambda path: make_film(path, audio_codec="flac", seconds=0.7)),
    "a.webm": ("video", lambda path: make_video(path, TIMES, codec="libvpx", b_frames=0)),
    "b.mp4": ("video", lambda path: make_video(path, TIMES, codec="libx265")),
    "a.avi": ("video", lambda path: make_video(path, TIMES, codec="mpeg4")),
    "b.mkv": ("video", lambda path: make_video(path, TIMES, codec="mjpeg", b_frames=0)),
    "a.wav": ("audio", _wav),
    "a.flac": ("audio", _wav),
    "a.ogg": ("audio", _wav),
    "a.pdf": ("document", lambda path: write_pdf(path, [write_text([(72, 770, "one")])] * 3)),
    "a.png": ("document", _png),
    "a.jpg": ("document", _png),
    "a.jsonl": ("sensors", lambda path: write(path, [reading(at * 5) for at in range(30)])),
}


SOUNDING = ("video", "audio")


@pytest.fixture(scope="module")
def decoders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Decoders]:
    limits = MediaLimits(frame_pixels=2_000_000, frames=2_000, duration_ms=600_000)
    with Decoders(tmp_path_factory.mktemp("decoders"), limits) as open_decoders:
        yield open_decoders


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("whole")
    return {name: make(folder / name).read_bytes() for name, (_, make) in MAKE.items()}


def damage(data: bytes, seed: int) -> bytes:
    """Cut, or with some bits flipped, or both, or with a piece taken out or doubled."""
    dice = random.Random(seed)
    kind = dice.randrange(5)
    changed = bytearray(data)
    if kind in (0, 2):
        del changed[dice.randrange(1, len(changed)) :]
    if kind in (1, 2):
        for _ in range(dice.choice((1, 3, 30))):
            changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
    if kind in (3, 4):
        start = dice.randrange(len(changed))
        piece = changed[start : start + dice.randrange(1, 400)]
        changed[start : start + (len(piece) if kind == 3 else 0)] = b"" if kind == 3 else piece
    return bytes(changed) or b"\0"


def read_all(decoders: Decoders, path: Path, kind: str) -> None:
    """Every track to its end or its error. Order and counts are checked as items arrive."""
    with opened(path) as file:
        try:
            tracks = decoders.open_tracks(file, kind, Form(ocr="never"))
        except BadInput as stop:
            assert stop.what
            assert stop.remedy
            return
        read_tracks(tracks)


def read_tracks(tracks: tuple[MediaTrack, ...]) -> None:
    for track in tracks:
        last = float("-inf")
        try:
            for at, item in enumerate(track.items()):
                assert item.index == at
                assert item.ts_ms >= last
                last = item.ts_ms
        except BadInput as stop:
            assert stop.where
            assert stop.remedy


@pytest.mark.parametrize("name", MAKE)
@given(seed=st.integers(0, 2**32))
@settings(
    deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_damaged_file_ends_in_order_or_with_an_error_that_names_it(
    decoders: Decoders, whole: dict[str, bytes], tmp_path: Path, name: str, seed: int
) -> None:
    path = tmp_path / name
    path.write_bytes(damage(whole[name], seed))
    read_all(decoders, path, MAKE[name][0])


@pytest.mark.parametrize("name", [name for name, (kind, _) in MAKE.items() if kind in SOUNDING])
def test_a_recording_that_was_cut_anywhere_is_never_taken_for_a_whole_one(
    decoders: Decoders, whole: dict[str, bytes], tmp_path: Path, name: str
) -> None:
    data = whole[name]
    for cut in [1, 2, 9, 50, *(len(data) * part // 7 for part in range(1, 7))]:
        path = tmp_path / name
        path.write_bytes(data[:-cut])
        with opened(path) as file, pytest.raises(BadInput):
            for track in decoders.open_tracks(file, MAKE[name][0]):
                for _ in track.items():
                    pass


@pytest.mark.heavy
@pytest.mark.parametrize("name", MAKE)
def test_hundreds_of_damaged_files_do_no_more_harm(
    decoders: Decoders, whole: dict[str, bytes], tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    for seed in range(300):
        path.write_bytes(damage(whole[name], seed))
        read_all(decoders, path, MAKE[name][0])
