from __future__ import annotations

from pathlib import Path

import pytest
import soundfile

from services.ingest.media.completeness import missing_bytes
from tests.services.ingest.media.recordings import make_film, make_video, tone

TIMES = list(range(0, 800, 40))


def lacking(path: Path, demuxer: str, cut: int) -> int:
    """What is said to be missing of a copy without its last `cut` bytes."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - cut])
    with path.open("rb") as stream:
        return missing_bytes(stream, demuxer, len(data) - cut)


@pytest.mark.parametrize(
    ("name", "demuxer"), [("a.mp4", "mov"), ("a.mkv", "matroska"), ("a.avi", "avi")]
)
@pytest.mark.parametrize("cut", [0, 1, 7, 100])
def test_a_container_knows_how_long_it_ought_to_be(
    tmp_path: Path, name: str, demuxer: str, cut: int
) -> None:
    path = make_video(tmp_path / name, TIMES, codec="mpeg4", b_frames=0)
    missing = lacking(path, demuxer, cut)
    assert missing == cut


@pytest.mark.parametrize("cut", [0, 1, 100])
def test_ogg_ends_with_a_page_that_says_so(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.ogg"
    soundfile.write(path, tone(2, 16_000), 16_000)
    assert bool(lacking(path, "ogg", cut)) == (cut > 0)


@pytest.mark.parametrize("cut", [0, 2, 100])
def test_a_wav_declares_its_length(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(1, 16_000), 16_000)
    assert lacking(path, "wav", cut) == cut


def test_sizes_that_were_never_filled_in_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(1, 16_000), 16_000)
    data = path.read_bytes()
    path.write_bytes(data[:4] + b"\xff\xff\xff\xff" + data[8:])
    assert lacking(path, "wav", 100) == 0


def test_a_large_film_of_both_streams_is_whole(tmp_path: Path) -> None:
    path = make_film(tmp_path / "a.mov", audio_codec="pcm_s16le")
    assert lacking(path, "mov", 0) == 0


@pytest.mark.parametrize("demuxer", ["mov", "matroska", "avi", "ogg", "wav", "unknown"])
@pytest.mark.parametrize("data", [b"", b"\0" * 20, b"RIFF", b"\x1a\x45\xdf\xa3", b"\0\0\0\1mdat"])
def test_nonsense_is_never_an_error_here(tmp_path: Path, demuxer: str, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    with (tmp_path / "a").open("rb") as stream:
        assert missing_bytes(stream, demuxer, len(data)) >= 0
