from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soundfile
from scipy import signal

from services.ingest.media import Form, MediaLimits
from services.ingest.media.mfcc import mfcc_blocks
from services.ingest.media.opening import open_tracks
from services.ingest.media.tracks import MediaTrack
from services.ingest.tracks import Item
from tests.services.ingest.media.recordings import click, make_film, number_of, opened, tone
from validators.contracts.errors import BadInput, TooLarge, Unsupported

SAMPLES = Form(audio="samples")


def track_of(
    path: Path, form: Form = SAMPLES, limits: MediaLimits | None = None, kind: str = "audio"
) -> MediaTrack:
    return open_tracks(opened(path), kind, limits, form)[-1]


def joined(items: list[Item]) -> npt.NDArray[np.float32]:
    return np.concatenate([np.asarray(item.value) for item in items])


def write(path: Path, samples: npt.NDArray[np.float32], rate_hz: int, **how: str) -> Path:
    soundfile.write(path, samples, rate_hz, **how)
    return path


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("a.wav", {"subtype": "PCM_16"}),
        ("a.wav", {"subtype": "PCM_24"}),
        ("a.wav", {"subtype": "FLOAT"}),
        ("a.wav", {"subtype": "PCM_U8"}),
        ("a.flac", {"subtype": "PCM_16"}),
        ("a.ogg", {"subtype": "VORBIS"}),
    ],
)
@pytest.mark.parametrize("rate_hz", [16_000, 44_100, 48_000])
def test_a_recording_becomes_blocks_of_a_tenth_of_a_second_at_16_khz(
    tmp_path: Path, name: str, how: dict[str, str], rate_hz: int
) -> None:
    mono = tone(1.25, rate_hz)
    path = write(tmp_path / name, np.column_stack([mono, mono]), rate_hz, **how)
    track = track_of(path)
    items = list(track.items())
    assert [item.ts_ms for item in items] == [100.0 * at for at in range(13)]
    assert [len(item.value) for item in items] == [1600] * 12 + [800]
    assert [item.duration_ms for item in items] == [100.0] * 12 + [50.0]
    assert (track.period_ms, track.feature_dims) == (100.0, (1600,))
    expected = tone(1.25, 16_000)
    inner = slice(400, -400)
    assert np.corrcoef(joined(items)[inner], expected[inner])[0, 1] > 0.999
    measures = dict(track.measures)
    assert (measures["channels"], measures["source_rate_hz"]) == (2, rate_hz)
    assert measures["duration_ms"] == pytest.approx(1250, abs=0.1)


def test_block_borders_are_inaudible(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    noise = (random.standard_normal(44_100 * 2) * 0.1).astype(np.float32)
    path = write(tmp_path / "a.wav", noise, 44_100, subtype="FLOAT")
    whole = signal.resample_poly(noise, 160, 441)
    assert np.abs(joined(list(track_of(path).items())) - whole).max() < 1e-5


def test_mfcc_frames_come_every_ten_milliseconds(tmp_path: Path) -> None:
    samples = click(1, 0.5, 16_000)
    path = write(tmp_path / "a.wav", samples, 16_000, subtype="FLOAT")
    track = track_of(path, Form())
    items = list(track.items())
    assert [item.ts_ms for item in items] == [10.0 * at for at in range(100)]
    assert (track.period_ms, track.feature_dims) == (10.0, (13,))
    whole = np.concatenate(list(mfcc_blocks(iter([samples]))))
    assert np.stack([np.asarray(item.value) for item in items]) == pytest.approx(whole, abs=1e-5)
    assert items[0].place == "sample 0"
    assert items[50].place == "sample 8000"


@pytest.mark.parametrize(
    ("name", "audio_codec", "video_codec"),
    [
        ("a.mp4", "aac", "libx264"),
        ("a.mkv", "aac", "libx264"),
        ("a.mkv", "flac", "libx264"),
        ("a.mov", "pcm_s16le", "libx264"),
        ("a.webm", "libopus", "libvpx"),
    ],
)
@pytest.mark.parametrize("delay_ms", [0, 128])
def test_the_sound_of_a_film_keeps_its_offset_from_the_pictures(
    tmp_path: Path, name: str, audio_codec: str, video_codec: str, delay_ms: int
) -> None:
    path = make_film(
        tmp_path / name, audio_codec=audio_codec, video_codec=video_codec, delay_ms=delay_ms
    )
    frames, sound = open_tracks(opened(path), "video", None, SAMPLES)
    assert (frames.modality, sound.modality) == ("video", "audio")
    flash = next(item.ts_ms for item in frames.items() if number_of(item.value) > 20)
    items = list(sound.items())
    heard = items[0].ts_ms + float(np.argmax(np.abs(joined(items)) > 0.3)) / 16
    assert flash == pytest.approx(500, abs=1)
    assert heard - flash == pytest.approx(delay_ms, abs=2)
    assert dict(sound.measures)["start_ms"] == pytest.approx(items[0].ts_ms)


def test_lost_audio_is_silence_in_its_place_and_reported(tmp_path: Path) -> None:
    path = make_film(tmp_path / "a.mkv", audio_codec="pcm_s16le", cut_ms=(200, 450))
    track = track_of(path)
    items = list(track.items())
    heard = float(np.argmax(np.abs(joined(items)) > 0.3)) / 16
    assert heard == pytest.approx(500, abs=2)
    assert [found.code for found in track.anomalies if found.code.startswith("audio")] == [
        "audio-gap"
    ]


@pytest.mark.parametrize("form", [SAMPLES, Form()])
def test_a_recording_cut_short_gives_its_samples_and_then_says_where(
    tmp_path: Path, form: Form
) -> None:
    path = write(tmp_path / "a.wav", tone(3, 16_000), 16_000)
    path.write_bytes(path.read_bytes()[:50_000])
    items = []
    with pytest.raises(BadInput, match="bytes are missing") as stop:
        for item in track_of(path, form).items():
            items.append(item)
    assert items[-1].ts_ms > 1300
    assert "at 1561 ms" in stop.value.where


def test_a_damaged_container_gives_its_samples_and_then_says_where(tmp_path: Path) -> None:
    path = make_film(tmp_path / "a.mkv", audio_codec="flac")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    items = []
    with pytest.raises(BadInput, match=r"at [1-9]"):
        for item in track_of(path).items():
            items.append(item)
    assert 2 < len(items) < 20


def test_clipping_and_silence_are_reported_by_their_time(tmp_path: Path) -> None:
    samples = np.concatenate(
        [tone(0.5, 16_000), np.clip(tone(0.2, 16_000, level=3), -1, 1), np.zeros(32_000)]
    )
    track = track_of(write(tmp_path / "a.wav", samples.astype(np.float32), 16_000))
    list(track.items())
    assert track.anomaly_counts == (("clipped", 2), ("silent", 1))
    assert [found.ts_ms for found in track.anomalies] == [500.0, 600.0, 700.0]
    assert dict(track.measures)["silent_share"] == pytest.approx(2 / 2.7, abs=0.01)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_samples_that_are_not_finite_end_the_recording_by_their_time(
    tmp_path: Path, bad: float
) -> None:
    samples = tone(1, 16_000)
    samples[12_000] = bad
    path = write(tmp_path / "a.wav", samples, 16_000, subtype="FLOAT")
    with pytest.raises(BadInput, match=r"at 700 ms"):
        list(track_of(path).items())


@pytest.mark.parametrize(
    ("samples", "rate_hz", "error"),
    [
        (np.zeros((1600, 20), np.float32), 16_000, TooLarge),
        (np.zeros(1600, np.float32), 1_000, Unsupported),
        (np.zeros(1600, np.float32), 384_000, Unsupported),
        (np.zeros(0, np.float32), 16_000, BadInput),
    ],
)
def test_odd_recordings_are_refused(
    tmp_path: Path, samples: npt.NDArray[np.float32], rate_hz: int, error: type[BadInput]
) -> None:
    path = write(tmp_path / "a.wav", samples, rate_hz)
    with pytest.raises(error):
        list(track_of(path).items())


def test_a_recording_longer_than_its_limit_stops(tmp_path: Path) -> None:
    path = write(tmp_path / "a.wav", tone(2, 16_000), 16_000)
    with pytest.raises(TooLarge, match="longer than 1000 ms"):
        list(track_of(path, limits=MediaLimits(duration_ms=1000)).items())


@pytest.mark.parametrize(
    "content", [b"RIFF\x24\0\0\0WAVEfmt ", b"fLaC" + bytes(40), b"not audio at all"]
)
def test_what_is_no_recording_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(BadInput):
        track_of(tmp_path / "a.wav")


def test_an_unknown_form_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.wav", tone(1, 16_000), 16_000)
    with pytest.raises(BadInput, match="no form"):
        track_of(path, Form(audio="spectrum"))
