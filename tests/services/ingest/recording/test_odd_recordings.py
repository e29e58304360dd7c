"""Recordings with something odd about them, all in one folder: each is told from its own events."""

from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infra.objects.folder import FolderStore
from services.ingest.alignment_log import AlignmentLog
from services.ingest.alignment_report import FoundLoss, read_report
from services.ingest.folder import Journal, ingest_folder
from services.ingest.recording.plan import IngestPlan
from tests.services.ingest.media.recordings import draw_page, scan_to_pdf
from tests.services.ingest.recording.films import chat, film, manifest
from tests.services.ingest.recording.test_take import Still
from tests.services.media_files import wav
from validators.contracts.dataset import Dataset, Sample
from validators.contracts.modality import Gap, Modality

SILENCE = np.zeros(16_000 * 20, np.float32)
LEAP = ["2016-12-31T23:59:59.5Z", "2016-12-31T23:59:60.5Z", "2017-01-01T02:00:00+02:00"]
EPOCH_MS = 1_700_000_000_000

ROWS: list[dict[str, Any]] = [
    {"id": "late-in-the-file", "video": "late.mkv"},
    {"id": "late-in-the-manifest", "video": "still.mp4", "audio": "silence.wav",
     "tracks": {"audio": {"start_ms": 128}}},
    {"id": "lost-frames", "video": "lost.mp4"},
    {"id": "timed-pages", "document": "two.pdf",
     "tracks": {"document": {"page_times_ms": [0, 4000]}}},
    {"id": "untimed-pages", "document": "two.pdf"},
    {"id": "shown-pages", "video": "short.mp4", "document": "two.pdf",
     "tracks": {"document": {"page_times_ms": [1500, 3500]}}},
    {"id": "last-page", "document": "one.pdf", "events": "said.jsonl"},
    {"id": "since-1970", "video": "short.mp4", "events": "epoch.jsonl", "captured_ms": EPOCH_MS},
    {"id": "nobody-knows-when", "video": "short.mp4", "events": "epoch.jsonl"},
    {"id": "impossible", "video": "short.mp4", "sensors": "leap.jsonl",
     "captured_ms": 1_483_228_798_000},
    {"id": "burst", "video": "short.mp4", "sensors": "burst.jsonl"},
]  # fmt: skip


@dataclass(frozen=True)
class Taken:
    dataset: Dataset
    log: bytes
    store: FolderStore

    def samples(self, name: str) -> list[Sample]:
        return [item for item in self.dataset.samples if item.id.startswith(f"{name}.")]

    def texts(self, name: str) -> list[str | None]:
        found = (sample.find("text") for sample in self.samples(name))
        return [self.store.get(item.digest).decode() if item else None for item in found]

    def losses(self, name: str) -> list[FoundLoss]:
        report = read_report(io.BytesIO(self.log))
        return [found for found in report.losses if found.loss.input_id == name]

    def events(self, name: str, stage: str) -> list[dict[str, Any]]:
        found = (json.loads(line) for line in self.log.splitlines())
        return [e for e in found if (e["input_id"], e["pipeline_stage"]) == (name, stage)]


def readings(path: Path, times: list[Any]) -> None:
    lines = (json.dumps({"ts": ts, "values": {"x": 1.0}}) for ts in times)
    path.write_text("\n".join(lines) + "\n")


def ingest(folder: Path, plan: IngestPlan | None = None, *rows: dict[str, Any]) -> Taken:
    store, stream = FolderStore(folder / "quarantine"), io.BytesIO()
    journal = Journal(AlignmentLog(stream), Still())
    dataset = ingest_folder(manifest(folder, *rows), store, journal=journal, plan=plan)
    return Taken(dataset, stream.getvalue(), store)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("odd")
    film(where / "late.mkv", 20, sound=SILENCE, late_ms=128, size=(64, 48))
    film(where / "still.mp4", 20, size=(64, 48))
    film(where / "short.mp4", 6, size=(64, 48))
    film(where / "lost.mp4", 6, size=(64, 48), drop=lambda number: 60 <= number < 90)
    (where / "silence.wav").write_bytes(wav(SILENCE))
    scan_to_pdf(where / "two.pdf", [draw_page([(60, 80, text)]) for text in ("ALPHA", "BRAVO")])
    scan_to_pdf(where / "one.pdf", [draw_page([(60, 80, "ONLY PAGE")])])
    chat(where / "said.jsonl", [500.0, 2500.0])
    chat(where / "epoch.jsonl", [EPOCH_MS + 500.0, EPOCH_MS + 2100.0])
    readings(where / "leap.jsonl", LEAP)
    times = [10.0 * number for number in range(600)]
    times[200:230] = [2290 + 0.1 * number for number in range(30)]
    readings(where / "burst.jsonl", times)
    return where


@pytest.fixture(scope="module")
def odd(folder: Path) -> Taken:
    return ingest(folder, None, *ROWS)


@pytest.mark.parametrize("where", ["file", "manifest"])
def test_a_late_start_is_a_lag_where_nothing_can_be_heard(odd: Taken, where: str) -> None:
    (found,) = odd.losses(f"late-in-the-{where}")
    assert (found.loss.track, found.code) == ("audio", "start-offset")
    assert found.observed_in == "timestamps"
    assert found.loss.mean_ms == pytest.approx(-128, abs=1)
    assert found.loss.repaired, "each item was placed at its own time"


def test_lost_frames_are_held_for_a_while_and_then_missing(odd: Taken) -> None:
    events = odd.events("lost-frames", "align")
    outcomes = Counter(event["outcomes"]["video"] for event in events)
    assert outcomes["held"] >= 4
    assert outcomes["dropped"] >= 20
    (found,) = odd.losses("lost-frames")
    assert (found.loss.kind, found.code) == ("gap", "gap")
    assert dict(found.evidence)["missing"] == 30
    assert 2000 <= found.loss.from_ms <= 2300


def test_a_scanned_document_gives_a_sample_for_each_page(odd: Taken) -> None:
    assert [sample.captured_ms for sample in odd.samples("timed-pages")] == [0, 4000]
    assert odd.texts("timed-pages") == ["ALPHA", "BRAVO"]


def test_a_document_that_nobody_timed_gives_its_pages_one_by_one(odd: Taken) -> None:
    assert odd.texts("untimed-pages") == ["ALPHA", "BRAVO"]
    assert [sample.captured_ms for sample in odd.samples("untimed-pages")] == [None, None]


def test_a_page_is_in_every_sample_while_it_is_shown(odd: Taken) -> None:
    assert odd.texts("shown-pages") == [
        None, "ALPHA", "ALPHA", "ALPHA\nBRAVO", "BRAVO", "BRAVO",
    ]  # fmt: skip


def test_what_is_said_after_the_last_page_belongs_to_it(odd: Taken) -> None:
    assert odd.texts("last-page") == ["ONLY PAGE\nevent 0\nevent 1"]


def test_times_since_1970_are_placed_by_when_the_recording_was_taken(odd: Taken) -> None:
    assert [at for at, text in enumerate(odd.texts("since-1970")) if text] == [0, 2]
    refused = {item.id: item.reason for item in odd.dataset.unreadable}
    assert refused == {"nobody-knows-when": "events-outside-recording"}


def test_impossible_times_are_told(odd: Taken) -> None:
    _, decode = odd.events("impossible", "decode")
    assert decode["anomalies"]["leap-second"] == 1
    assert decode["anomalies"]["timezone-jump"] == 1
    (observe,) = odd.events("impossible", "observe")
    assert "impossible" in {cause["code"] for cause in observe["causes"]}


def test_readings_that_were_held_up_and_came_at_once_are_a_burst(odd: Taken) -> None:
    (found,) = odd.losses("burst")
    assert (found.loss.track, found.loss.kind, found.code) == ("sensors", "gap", "burst")
    assert dict(found.evidence) == {"missing": 29, "late": 29}
    assert found.loss.from_ms == pytest.approx(2000, abs=40)
    assert found.loss.until_ms == pytest.approx(2290, abs=40)


def test_what_may_have_no_gap_and_no_odd_time_is_refused_where_it_has(folder: Path) -> None:
    plan = IngestPlan(modalities=tuple(Modality(name, gap=Gap.REFUSE) for name in ("video", "imu")))
    rows = [row for row in ROWS if row["id"] in ("lost-frames", "impossible")]
    refused = ingest(folder, plan, *rows).dataset.unreadable
    assert {item.id: item.reason for item in refused} == {
        "lost-frames": "video-gap", "impossible": "sensors-impossible-times",
    }  # fmt: skip
