from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
import soundfile

from services.ingest.media import Decoders, Form, MediaLimits, MediaTrack
from services.ingest.media.opening import open_tracks
from tests.services.ingest.media.recordings import (
    make_film,
    make_video,
    opened,
    tone,
    write_pdf,
    write_text,
)
from tests.services.ingest.media.test_sensors import reading, write
from validators.contracts.errors import (
    BadInput,
    ModalgateError,
    NotFound,
    TooLarge,
    Unavailable,
    Unsupported,
)

TIMES = list(range(0, 4000, 40))


@pytest.fixture(scope="module")
def decoders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Decoders]:
    with Decoders(tmp_path_factory.mktemp("decoders")) as open_decoders:
        yield open_decoders


def pids() -> set[int]:
    """Decoders at work for this process."""
    return {child.pid for child in psutil.Process().children() if _decodes(child)}


def _decodes(child: psutil.Process) -> bool:
    try:
        return any("decode_media" in part for part in child.cmdline())
    except (psutil.ZombieProcess, psutil.NoSuchProcess):  # of another test, and at its end
        return False


def make(kind: str, folder: Path) -> Path:
    if kind == "video":
        return make_film(folder / "a.mp4", audio_codec="aac", delay_ms=128)
    if kind == "audio":
        soundfile.write(folder / "a.wav", tone(2, 44_100), 44_100)
        return folder / "a.wav"
    if kind == "document":
        return write_pdf(folder / "a.pdf", [write_text([(72, 770, "one"), (72, 740, "文")])] * 3)
    if kind == "events":
        return write(folder / "a", [{"ts": at * 10, "text": f"event {at}"} for at in range(20)])
    return write(folder / "a", [reading(at * 5) for at in range(200)] + [reading(3)])


@pytest.mark.parametrize("kind", ["video", "audio", "document", "events", "sensors"])
def test_a_child_gives_what_this_process_would(
    decoders: Decoders, tmp_path: Path, kind: str
) -> None:
    file = opened(make(kind, tmp_path))
    here, there = open_tracks(file, kind), decoders.open_tracks(file, kind)
    assert len(here) == len(there) > 0
    for one, two in zip(here, there, strict=True):
        facts = [(t.modality, t.period_ms, t.feature_dims) for t in (one, two)]
        assert facts[0] == facts[1]
        for mine, given in zip(one.items(), two.items(), strict=True):
            assert (mine.index, mine.ts_ms, mine.duration_ms, mine.place) == (
                given.index, given.ts_ms, given.duration_ms, given.place,
            )  # fmt: skip
            assert np.array_equal(np.asarray(mine.value), np.asarray(given.value))
        assert one.anomalies == two.anomalies
        assert (one.anomaly_counts, one.measures) == (two.anomaly_counts, two.measures)


def test_a_form_reaches_the_child(decoders: Decoders, tmp_path: Path) -> None:
    file = opened(make("video", tmp_path))
    frames, sound = decoders.open_tracks(file, "video", Form(shrink_to_px=16, audio="samples"))
    assert (frames.feature_dims, sound.feature_dims) == ((12, 16, 3), (1600,))


def stop_of(track: MediaTrack) -> tuple[int, ModalgateError]:
    count = 0
    with pytest.raises(ModalgateError) as stop:
        for _ in track.items():
            count += 1
    return count, stop.value


def test_errors_are_those_of_this_process_and_the_child_goes_on(
    decoders: Decoders, tmp_path: Path
) -> None:
    path = make_video(tmp_path / "a.mp4", TIMES, options={"movflags": "faststart"})
    path.write_bytes(path.read_bytes()[:-1500])
    file = opened(path)
    (here,), (there,) = open_tracks(file, "video"), decoders.open_tracks(file, "video")
    before = pids()
    (one, mine), (two, given) = stop_of(here), stop_of(there)
    assert one == two > 0
    assert (type(mine), mine.document()) == (type(given), given.document())
    with pytest.raises(Unsupported):
        decoders.open_tracks(file, "smell")
    assert pids() == before


def test_two_tracks_of_one_file_are_read_side_by_side(decoders: Decoders, tmp_path: Path) -> None:
    frames, sound = decoders.open_tracks(opened(make("video", tmp_path)), "video")
    pairs = list(zip(frames.items(), sound.items(), strict=False))
    assert len(pairs) == 60


def test_a_crash_refuses_one_file_and_the_next_is_read(decoders: Decoders, tmp_path: Path) -> None:
    file = opened(make_video(tmp_path / "a.mp4", TIMES * 1, size=(640, 480)))
    (track,) = decoders.open_tracks(file, "video")
    idle = pids()
    items = track.items()
    first = next(items)
    (busy,) = [pid for pid in pids() if pid not in idle] or idle
    os.kill(busy, signal.SIGSEGV)
    with pytest.raises(BadInput, match=r"crashed \(SIGSEGV\)") as stop:
        list(items)
    assert first.place == "frame 0"
    assert stop.value.where.startswith("a.mp4, after frame ")
    (again,) = decoders.open_tracks(file, "video")
    assert len(list(again.items())) == len(TIMES)


def test_a_reader_that_stops_early_leaves_no_decoder_behind(
    decoders: Decoders, tmp_path: Path
) -> None:
    (track,) = decoders.open_tracks(opened(make_video(tmp_path / "a.mp4", TIMES)), "video")
    items = track.items()
    next(items)
    before = pids()
    items.close()  # type: ignore[attr-defined]  # a generator
    assert len(pids()) == len(before) - 1


@pytest.mark.slow
def test_a_decoder_that_makes_no_progress_is_stopped(tmp_path: Path) -> None:
    file = opened(make_video(tmp_path / "a.mp4", TIMES, size=(640, 480)))
    with Decoders(tmp_path / "scratch", MediaLimits(stall_s=3)) as decoders:
        (track,) = decoders.open_tracks(file, "video")
        items = track.items()
        next(items)
        (pid,) = pids()
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(BadInput, match="no progress"):
            list(items)
    assert not pids()


@pytest.mark.slow
def test_a_decoder_that_takes_too_much_memory_is_stopped(tmp_path: Path) -> None:
    file = opened(make_video(tmp_path / "a.mp4", TIMES))
    small = MediaLimits(memory_bytes=20 * 1024**2)
    with (
        Decoders(tmp_path / "scratch", small) as decoders,
        pytest.raises(TooLarge, match="20 MiB"),
    ):
        decoders.open_tracks(file, "video")


@pytest.mark.slow
def test_closing_ends_every_child_also_in_the_middle_of_a_track(tmp_path: Path) -> None:
    file = opened(make_video(tmp_path / "a.mp4", TIMES, size=(640, 480)))
    with Decoders(tmp_path / "scratch") as decoders:
        (track,) = decoders.open_tracks(file, "video")
        items = track.items()
        next(items)
        assert pids()
    assert not pids()
    with pytest.raises(Unavailable, match="closed"):
        list(items)


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        opened(tmp_path / "none.mp4")
