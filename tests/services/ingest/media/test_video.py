from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

from services.ingest.media import Form, MediaFile, MediaLimits
from services.ingest.media.opening import open_tracks
from services.ingest.media.tracks import MediaTrack
from services.ingest.media.video import VideoTrack
from services.ingest.tracks import Item
from tests.services.ingest.media.recordings import (
    make_odd_clock,
    make_video,
    number_of,
    opened,
    picture,
)
from validators.contracts.errors import BadInput, TooLarge, Unsupported

STEADY = [round(at * 1000 / 30) for at in range(40)]
UNEVEN = [0, 20, 45, 145, 150, 400, 420, 900, 905, 950, 1000, 1033, 1400]


def read(
    path: Path, limits: MediaLimits | None = None, form: Form | None = None
) -> tuple[MediaTrack, list[Item]]:
    (track,) = open_tracks(opened(path), "video", limits, form)
    return track, list(track.items())


def read_until_stop(path: Path) -> tuple[list[Item], BadInput]:
    (track,) = open_tracks(opened(path), "video")
    items = []
    with pytest.raises(BadInput) as stop:
        for item in track.items():
            items.append(item)
    return items, stop.value


@pytest.mark.parametrize(
    ("name", "codec", "b_frames"),
    [
        ("a.mp4", "libx264", 3),
        ("a.mov", "libx264", 3),
        ("a.mkv", "libx264", 3),
        ("a.avi", "libx264", 3),
        ("b.avi", "mpeg4", 2),
        ("a.webm", "libvpx", 0),
        ("b.mp4", "libx265", 3),
        ("c.mp4", "mpeg4", 0),
    ],
)
def test_frames_come_in_order_of_presentation_whatever_their_order_in_the_file(
    tmp_path: Path, name: str, codec: str, b_frames: int
) -> None:
    track, items = read(make_video(tmp_path / name, STEADY, codec=codec, b_frames=b_frames))
    assert [number_of(item.value) for item in items] == list(range(40))
    assert [item.ts_ms for item in items] == pytest.approx(STEADY, abs=1.01)  # 1 ms in Matroska
    assert [item.index for item in items] == list(range(40))
    assert track.anomalies == ()
    assert track.period_ms == pytest.approx(1000 / 30, abs=0.1)
    assert track.feature_dims == (48, 64, 3)


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv"])
def test_a_variable_frame_rate_is_kept_as_it_is(tmp_path: Path, name: str) -> None:
    track, items = read(make_video(tmp_path / name, UNEVEN))
    assert [item.ts_ms for item in items] == UNEVEN
    assert [number_of(item.value) for item in items] == list(range(len(UNEVEN)))
    steps = [b - a for a, b in pairwise(UNEVEN)]
    measures = dict(track.measures)
    assert measures["interval_min_ms"] == min(steps)
    assert measures["interval_max_ms"] == max(steps)
    assert measures["frames"] == len(UNEVEN)


def test_a_stream_that_starts_late_keeps_its_start(tmp_path: Path) -> None:
    track, items = read(make_video(tmp_path / "a.mkv", [time + 250 for time in STEADY]))
    assert items[0].ts_ms == 250
    assert dict(track.measures)["start_ms"] == 250


def test_frames_stored_in_another_order_than_their_times_are_put_in_place_and_reported(
    tmp_path: Path,
) -> None:
    track, items = read(make_odd_clock(tmp_path / "a.mkv", [100, 140, 120, 160, 200]))
    assert [(item.ts_ms, number_of(item.value)) for item in items] == [
        (100, 0), (120, 2), (140, 1), (160, 3), (200, 4),
    ]  # fmt: skip
    assert [(found.code, found.index, found.ts_ms) for found in track.anomalies] == [
        ("out-of-order", 2, 120.0)
    ]


def test_a_second_frame_at_one_time_is_left_out_and_reported(tmp_path: Path) -> None:
    track, items = read(make_odd_clock(tmp_path / "a.mkv", [100, 120, 120, 160]))
    assert [item.ts_ms for item in items] == [100, 120, 160]
    assert track.anomaly_counts == (("duplicate-timestamp", 1),)


@pytest.mark.parametrize("turn", [0, 90, 180, -90])
def test_a_turned_recording_comes_upright(tmp_path: Path, turn: int) -> None:
    path = make_video(tmp_path / "a.mp4", STEADY[:3], turn=turn)
    track, items = read(path)
    upright = np.rot90(picture(0), turn // 90)  # FFmpeg's degrees are counterclockwise
    assert track.feature_dims == items[0].value.shape == upright.shape
    difference = np.abs(items[0].value.astype(int) - upright)
    assert np.median(difference) < 8


def test_a_turn_that_is_no_quarter_is_not_applied_and_reported(tmp_path: Path) -> None:
    track, items = read(make_video(tmp_path / "a.mp4", STEADY[:3], turn=30))
    assert items[0].value.shape == (48, 64, 3)
    assert dict(track.anomaly_counts)["rotation-ignored"] == 1


def test_the_scaler_shrinks_the_longest_side(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", STEADY[:3], size=(320, 160), turn=90)
    track, items = read(path, form=Form(shrink_to_px=80))
    assert track.feature_dims == items[0].value.shape == (80, 40, 3)
    assert read(path, form=Form(shrink_to_px=4000))[0].feature_dims == (320, 160, 3)


def test_colours_survive(tmp_path: Path) -> None:
    _, items = read(make_video(tmp_path / "a.mp4", STEADY[:2], size=(320, 240)))
    red, grey = items[1].value[30, 40].astype(int), items[1].value[200, 300].astype(int)
    assert np.abs(red - (250, 10, 10)).max() < 12
    assert np.abs(grey - 6).max() < 6


def test_a_file_cut_short_gives_its_good_frames_and_then_names_the_next(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", STEADY, options={"movflags": "faststart"})
    whole = [hashlib.sha256(item.value.tobytes()).digest() for item in read(path)[1]]
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 4 // 5])
    items, stop = read_until_stop(path)
    assert 3 < len(items) < 40
    assert [hashlib.sha256(item.value.tobytes()).digest() for item in items] == whole[: len(items)]
    assert stop.where == f"a.mp4, frame {len(items)}"


def test_a_file_cut_between_two_frames_is_noticed_by_its_declared_size(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mkv", STEADY)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    items, stop = read_until_stop(path)
    assert 3 < len(items) < 40
    assert "bytes are missing" in stop.what


def test_a_file_cut_before_its_tables_says_so(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", STEADY)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 3])
    with pytest.raises(BadInput, match="bytes are missing"):
        open_tracks(opened(path), "video")


def test_a_damaged_frame_is_named_and_nothing_is_painted_over_it(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", STEADY, size=(160, 120))
    whole = [hashlib.sha256(item.value.tobytes()).digest() for item in read(path)[1]]
    data = bytearray(path.read_bytes())
    start = data.index(b"mdat") + 4
    middle = start + (len(data) - start) // 2
    data[middle : middle + 8] = bytes(255 - byte for byte in data[middle : middle + 8])
    path.write_bytes(bytes(data))
    items, stop = read_until_stop(path)
    assert 3 < len(items) < 40
    assert [hashlib.sha256(item.value.tobytes()).digest() for item in items] == whole[: len(items)]
    assert stop.where == f"a.mp4, frame {len(items)}"


@pytest.mark.parametrize(
    "content",
    [
        b"#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1/a.ts\n",
        b"ffconcat version 1.0\nfile /etc/passwd\n",
        b"<?xml version='1.0'?><MPD></MPD>",
        b"data:video/mp4;base64,AAAA",
        b"\x47" + bytes(187) + b"\x47" + bytes(187),
        b"GIF89a" + bytes(40),
        bytes(64),
    ],
    ids=["hls", "concat", "dash", "data", "mpegts", "gif", "zeros"],
)
def test_what_is_no_container_of_ours_is_never_tried(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(content)
    with pytest.raises(Unsupported):
        open_tracks(opened(path), "video")


@pytest.mark.parametrize(
    "content",
    [
        b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom",
        b"\0\0\0\x08moov" + bytes(100),
        b"\x1a\x45\xdf\xa3" + bytes(100),
        b"RIFF\x10\0\0\0AVI LIST" + bytes(8),
        b"OggS" + bytes(60),
        b"\0\0\0\x14ftypqt  #EXTM3U\nhttp://127.0.0.1/x",
    ],
    ids=["no-tables", "empty-tables", "matroska", "avi", "ogg", "playlist-in-disguise"],
)
def test_an_empty_or_disguised_container_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(content)
    with pytest.raises(BadInput):
        open_tracks(opened(path), "video")


def test_a_declared_size_beyond_the_limit_is_refused_before_decoding(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", STEADY[:3])
    with pytest.raises(TooLarge, match="64 x 48"):
        open_tracks(opened(path), "video", MediaLimits(frame_pixels=64 * 47))


def test_a_real_size_beyond_the_declared_one_stops_the_decoder(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mkv", STEADY[:6], codec="mjpeg", b_frames=0, size=(640, 480))
    data = path.read_bytes()
    declared = data.replace(b"\xb0\x82\x02\x80", b"\xb0\x82\x00\x40").replace(
        b"\xba\x82\x01\xe0", b"\xba\x82\x00\x30"
    )  # PixelWidth and PixelHeight of Matroska
    assert declared != data
    path.write_bytes(declared)
    with pytest.raises(BadInput):
        read(path, MediaLimits(frame_pixels=64 * 48))


@pytest.mark.parametrize("limits", [MediaLimits(frames=10), MediaLimits(duration_ms=300)])
def test_more_frames_or_a_longer_time_than_allowed_stop(
    tmp_path: Path, limits: MediaLimits
) -> None:
    path = make_video(tmp_path / "a.mp4", STEADY)
    (track,) = open_tracks(opened(path), "video", limits)
    items = []
    with pytest.raises(TooLarge, match="frame 10"):
        for item in track.items():
            items.append(item)
    assert len(items) == 10


def test_a_container_without_pictures_is_no_video(tmp_path: Path) -> None:
    container = av.open(str(tmp_path / "a.mkv"), "w")
    stream = container.add_stream("pcm_s16le", rate=16_000)
    frame = av.AudioFrame.from_ndarray(np.zeros((1, 1600), np.int16), format="s16", layout="mono")
    frame.sample_rate = 16_000
    for packet in stream.encode(frame):
        container.mux(packet)
    container.close()
    with pytest.raises(Unsupported, match="no video stream"):
        VideoTrack(opened(tmp_path / "a.mkv"), MediaLimits(), Form())


def test_errors_hold_no_content_and_no_path(tmp_path: Path) -> None:
    path = make_video(tmp_path / "secret-name.mp4", STEADY)
    path.write_bytes(path.read_bytes()[:2000])
    with (
        MediaFile.open(path, name="row-1", limit_bytes=10**6) as file,
        pytest.raises(BadInput) as stop,
    ):
        open_tracks(file, "video")
    assert "secret-name" not in str(stop.value)
    assert stop.value.remedy
