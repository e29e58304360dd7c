"""Real files in, aligned samples and a log out."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infra.objects.folder import FolderStore
from services.ingest.alignment_log import AlignmentLog
from services.ingest.alignment_report import Report, read_report
from services.ingest.folder import Journal, ingest_folder
from services.ingest.normalise import read_png, read_wav
from services.ingest.recording.plan import IngestPlan
from tests.services.ingest.recording.films import (
    chat,
    clicks,
    film,
    manifest,
    moments,
    shaken,
)
from tests.services.media_files import wav
from validators.contracts.dataset import Dataset
from validators.contracts.modality import Gap, Modality
from validators.contracts.pipeline import IngestSettings

SECONDS = 40
AT = moments(SECONDS)


class Still:
    def monotonic_ns(self) -> int:
        return 0

    def wall_ns(self) -> int:
        return 0


@dataclass(frozen=True)
class Taken:
    dataset: Dataset
    log: bytes
    store: FolderStore

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.splitlines()]

    @property
    def report(self) -> Report:
        return read_report(io.BytesIO(self.log))

    def stage(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["pipeline_stage"] == name]


def take(folder: Path, row: dict[str, Any], plan: IngestPlan | None = None) -> Taken:
    store = FolderStore(folder / "quarantine")
    stream = io.BytesIO()
    journal = Journal(AlignmentLog(stream), Still(), trace_id="t")
    dataset = ingest_folder(manifest(folder, {"id": "clip", **row}), store, journal=journal,
                            plan=plan)  # fmt: skip
    return Taken(dataset, stream.getvalue(), store)


@pytest.fixture(scope="module")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One scene by video, audio (in step, 128 ms behind, behind from the middle) and sensors."""
    folder = tmp_path_factory.mktemp("shots")
    film(folder / "a.mp4", SECONDS, at_s=AT)
    lags: dict[str, Callable[[float], float]] = {
        "sync.wav": lambda _: 0.0,
        "late.wav": lambda _: 0.128,
        "step.wav": lambda at: 0.128 if at >= 20 else 0.0,
    }
    for name, lag in lags.items():
        (folder / name).write_bytes(wav(clicks(SECONDS, AT, lag_s=lag)))
    shaken(folder / "imu.jsonl", SECONDS, AT, lag_s=-0.042)
    chat(folder / "chat.jsonl", [200.0 * i for i in range(5 * SECONDS)])
    return folder


@pytest.fixture(scope="module")
def late(shots: Path) -> Taken:
    return take(shots, {"video": "a.mp4", "audio": "late.wav", "sensors": "imu.jsonl",
                        "events": "chat.jsonl", "captured_ms": 1_700_000_000_000})  # fmt: skip


def test_a_recording_becomes_samples_on_one_time_base(late: Taken) -> None:
    samples = late.dataset.samples
    assert late.dataset.unreadable == ()
    assert [sample.id for sample in samples] == [f"clip.{number:05d}" for number in range(SECONDS)]
    assert [sample.captured_ms for sample in samples[:3]] == [
        1_700_000_000_000, 1_700_000_001_000, 1_700_000_002_000,
    ]  # fmt: skip
    seventh = samples[7]
    assert {item.modality: item.media_type for item in seventh.media} == {
        "audio": "audio/wav", "image": "image/png", "text": "text/plain",
    }  # fmt: skip
    image, audio, text = (seventh.find(name) for name in ("image", "audio", "text"))
    assert image and audio and text
    assert read_png(late.store.get(image.digest)).shape == (96, 128, 3)
    assert len(read_wav(late.store.get(audio.digest))) == 16_000
    assert late.store.get(text.digest).decode().split("\n") == [f"event {i}" for i in range(35, 40)]


def test_a_lag_of_128_ms_and_a_lead_of_42_are_reported_with_their_signs(late: Taken) -> None:
    tick = late.stage("align")[600]["observed_offsets_ms"]
    assert tick["audio"] == pytest.approx(-128, abs=10)
    assert tick["sensors"] == pytest.approx(42, abs=10)
    assert tick["video"] == 0
    assert "events" not in tick, "what was not observed has no offset"
    found = {item.loss.track: item for item in late.report.losses}
    assert found.keys() == {"audio", "sensors"}
    assert all(item.code == "start-offset" and item.loss.at_end for item in found.values())
    assert all(item.loss.first_tick == 0 and item.loss.repaired for item in found.values())


def test_what_lags_is_shifted_until_what_is_heard_is_what_is_seen(late: Taken) -> None:
    for number, sample in enumerate(late.dataset.samples[:39]):
        audio = sample.find("audio")
        assert audio
        loud = np.abs(read_wav(late.store.get(audio.digest)).astype(float)) > 5000
        first = [at for at in AT if number <= at < number + 1]
        if first and loud.any() and not any(0 < number - at < 0.15 for at in AT):
            assert np.argmax(loud) / 16_000 == pytest.approx(first[0] - number, abs=0.015)


def test_every_stage_writes_events_that_the_published_schema_accepts(late: Taken) -> None:
    assert late.report.bad_count == 0
    assert set(late.report.stages) == {"decode", "observe", "align", "normalise", "features"}
    assert [event["modalities"] for event in late.stage("decode")] == [
        ["video"], ["audio"], ["events"], ["sensors"],
    ]  # fmt: skip
    assert late.stage("features")[3]["feature_dims"] == {"audio": [100, 13]}
    assert late.stage("normalise")[3]["feature_dims"]["image"] == [96, 128, 3]
    assert all(event["trace_id"] == "t" for event in late.events)
    ids = [event["event_id"] for event in late.events]
    assert len(set(ids)) == len(ids)


@pytest.mark.slow
def test_the_same_recording_gives_the_same_samples_and_events(shots: Path, late: Taken) -> None:
    again = take(shots, {"video": "a.mp4", "audio": "late.wav", "sensors": "imu.jsonl",
                         "events": "chat.jsonl", "captured_ms": 1_700_000_000_000})  # fmt: skip
    assert again.dataset == late.dataset
    assert again.log == late.log


def test_tracks_in_step_are_said_to_be(shots: Path) -> None:
    taken = take(shots, {"video": "a.mp4", "audio": "sync.wav"})
    assert taken.report.losses == []
    assert taken.report.tracks["audio"].mean_ms == pytest.approx(0, abs=10)


@pytest.mark.slow
def test_a_lag_that_begins_in_the_middle_is_located_to_its_first_moment(shots: Path) -> None:
    taken = take(shots, {"video": "a.mp4", "audio": "step.wav"})
    (found,) = taken.report.losses
    last_before = max(at for at in AT if at < 20)
    first_after = min(at for at in AT if at >= 20)
    assert found.code == "step"
    assert last_before * 1000 - 100 <= found.loss.from_ms <= first_after * 1000 + 100
    assert found.loss.mean_ms == pytest.approx(-128, abs=10)
    assert found.loss.first_tick == pytest.approx(found.loss.from_ms * 0.03, abs=1)


@pytest.mark.slow
def test_a_track_out_of_step_is_refused_where_the_policy_says_so(shots: Path) -> None:
    row = {"video": "a.mp4", "audio": "late.wav"}
    for plan in (
        IngestPlan(IngestSettings(offsets="refuse")),
        IngestPlan(modalities=(Modality("audio", gap=Gap.REFUSE),)),
    ):
        taken = take(shots, row, plan)
        (refused,) = taken.dataset.unreadable
        assert (refused.reason, taken.dataset.samples) == ("audio-out-of-step", ())
    wide = IngestPlan(IngestSettings(offsets="refuse", tolerance_ms=(("audio", 200.0),)))
    assert len(take(shots, row, wide).dataset.samples) == SECONDS


BAD: dict[str, tuple[str, bytes | None]] = {
    "missing-file": ("video", None),
    "empty-video": ("video", b""),
    "unsupported-video": ("video", b"no video at all"),
    "corrupt-events": ("events", b'{"ts": 0, "text": "x"}\nnot json\n'),
    "corrupt-sensors": ("sensors", b'{"ts": "2026-01-01T00:00:00", "values": {"x": 1}}'),
    "corrupt-document": ("document", b"%PDF-1.4 broken"),
}
"""The stable reason of a track that cannot be read."""


def test_a_track_that_cannot_be_read_makes_its_row_unreadable_and_nothing_is_stored(
    tmp_path: Path,
) -> None:
    rows = [{"id": "outside", "video": "../a.mp4"}]
    for reason, (track, content) in BAD.items():
        if content is not None:
            (tmp_path / reason).write_bytes(content)
        rows.append({"id": reason, track: reason})
    store = FolderStore(tmp_path / "quarantine")
    found = ingest_folder(manifest(tmp_path, *rows), store)
    assert {item.id: item.reason for item in found.unreadable} == {
        "outside": "path-outside-folder", **{reason: reason for reason in BAD},
    }  # fmt: skip
    assert found.samples == ()
    assert list(store.objects()) == []


def test_one_bad_track_spoils_the_whole_recording(tmp_path: Path) -> None:
    film(tmp_path / "a.mp4", 4)
    (tmp_path / "a.wav").write_bytes(b"RIFF....WAVE")
    taken = take(tmp_path, {"video": "a.mp4", "audio": "a.wav"})
    (refused,) = taken.dataset.unreadable
    assert refused.reason.endswith("-audio")
    assert list(taken.store.objects()) == []


def test_samples_are_as_far_apart_as_declared(tmp_path: Path) -> None:
    film(tmp_path / "a.mp4", 3)
    plan = IngestPlan(IngestSettings(sample_every_ms=250))
    samples = take(tmp_path, {"video": "a.mp4"}, plan).dataset.samples
    assert [sample.captured_ms for sample in samples] == [250 * at for at in range(12)]


@pytest.mark.slow
def test_a_clock_that_runs_slow_is_named_with_its_rate_and_followed(tmp_path: Path) -> None:
    at_s = moments(150, seed=4)
    film(tmp_path / "a.mp4", 150, at_s=at_s, size=(64, 48))
    drifting = clicks(151, at_s, lag_s=lambda at: at * 800e-6)
    (tmp_path / "a.wav").write_bytes(wav(drifting))
    taken = take(tmp_path, {"video": "a.mp4", "audio": "a.wav"})
    (found,) = taken.report.losses
    assert (found.loss.track, found.code) == ("audio", "clock-rate")
    assert dict(found.evidence)["ppm"] == pytest.approx(-800, abs=120)
    assert found.loss.from_ms == pytest.approx(40 / 800e-6, abs=12_000)
    assert found.loss.worst_ms == pytest.approx(-120, abs=12)
    assert found.loss.repaired
