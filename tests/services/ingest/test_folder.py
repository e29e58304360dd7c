from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from infra.objects.folder import FolderStore
from services.ingest.alignment_log import AlignmentLog
from services.ingest.folder import Journal, ingest_folder
from services.ingest.normalise import read_png, read_wav
from tests.services.media_files import encode, picture, tone, wav, write_folder
from validators.contracts.dataset import Dataset
from validators.contracts.errors import NotFound


class Ticking:
    """A clock that moves 2 ms at every look."""

    def __init__(self) -> None:
        self._now_ns = 0

    def monotonic_ns(self) -> int:
        self._now_ns += 2_000_000
        return self._now_ns

    def wall_ns(self) -> int:
        return 0


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "quarantine")


def whole(folder: Path) -> Path:
    rows = [
        {"id": "rocket", "image": "rocket.jpg"},
        {"id": "cat", "image": "cat.png", "text": "a sleeping cat", "audio": "cat.wav"},
    ]
    files = {
        "cat.png": encode(picture("cat")),
        "rocket.jpg": encode(picture("rocket"), "JPEG"),
        "cat.wav": wav(np.stack([tone(rate_hz=48_000)] * 2, axis=1), 48_000),
    }
    folder.mkdir(exist_ok=True)
    return write_folder(folder, rows, files)


def test_every_row_becomes_a_sample_in_id_order(tmp_path: Path, store: FolderStore) -> None:
    found = ingest_folder(whole(tmp_path / "set"), store)
    assert found.unreadable == ()
    assert [sample.id for sample in found.samples] == ["cat", "rocket"]
    cat = found.samples[0]
    assert [item.media_type for item in cat.media] == ["audio/wav", "image/png", "text/plain"]
    assert cat.tag_map()["sensor"] == "camera"
    image, audio, text = (cat.find(name) for name in ("image", "audio", "text"))
    assert image and audio and text
    assert read_png(store.get(image.digest)).shape == (300, 451, 3)
    assert len(read_wav(store.get(audio.digest))) == 16_000, "48 kHz stereo became 16 kHz mono"
    assert store.get(text.digest) == b"a sleeping cat"
    assert audio.measure("duration_ms") == 1000


def test_the_same_folder_gives_the_same_digest(tmp_path: Path, store: FolderStore) -> None:
    folder = whole(tmp_path / "set")
    assert ingest_folder(folder, store).digest == ingest_folder(folder, store).digest


def test_where_a_photograph_was_taken_does_not_survive(tmp_path: Path, store: FolderStore) -> None:
    image = picture("rocket")
    exif = Image.Exif()
    exif[0x0110] = "Secret Camera"
    exif[0x8825] = {1: "N", 2: (52.0, 31.0, 12.0)}
    rows = [{"id": "there", "image": "a.jpg"}]
    tagged = encode(image, "JPEG", exif=exif, comment=b"Secret Comment")
    (sample,) = ingest_folder(write_folder(tmp_path, rows, {"a.jpg": tagged}), store).samples
    stored = store.get(sample.media[0].digest)
    assert b"Secret" in tagged
    assert b"Secret" not in stored
    with Image.open(io.BytesIO(stored)) as read:
        assert not read.getexif()
        assert not read.info


@pytest.mark.parametrize(
    ("row", "files", "reason"),
    [
        ({"image": "a.png"}, {}, "missing-file"),
        ({"image": "a.png"}, {"a.png": b""}, "empty-image"),
        ({"image": "a.png"}, {"a.png": b"no picture"}, "unsupported-image"),
        ({"image": "a.png"}, {"a.png": encode(picture("cat"))[:5000]}, "corrupt-image"),
        ({"image": "a.gif"}, {"a.gif": encode(picture("coins"), "GIF")}, "unsupported-image"),
        ({"image": "a.png"}, {"a.png": bytes(5 * 1024 * 1024)}, "file-too-large"),
        ({"image": "../a.png"}, {}, "path-outside-folder"),
        ({"audio": "a.wav"}, {"a.wav": b""}, "empty-audio"),
        ({"audio": "a.wav"}, {"a.wav": wav(np.zeros(0, np.float32))}, "empty-audio"),
        ({"audio": "a.wav"}, {"a.wav": b"RIFF....WAVE"}, "unsupported-audio"),
        ({"audio": "a.wav"}, {"a.wav": wav(tone(61))}, "audio-too-large"),
        ({"text": " \u200b "}, {}, "empty-text"),
        ({"text": "a\u0007b"}, {}, "corrupt-text"),
        ({"text": "good", "image": "a.png"}, {"a.png": b"bad"}, "unsupported-image"),
    ],
)
def test_a_row_that_cannot_be_read_is_listed_with_its_reason(
    tmp_path: Path, store: FolderStore, row: dict[str, str], files: dict[str, bytes], reason: str
) -> None:
    found = ingest_folder(write_folder(tmp_path, [{"id": "bad", **row}], files), store)
    assert found.samples == ()
    assert [(item.id, item.reason) for item in found.unreadable] == [("bad", reason)]


def test_no_manifest_is_said_at_once(tmp_path: Path, store: FolderStore) -> None:
    with pytest.raises(NotFound):
        ingest_folder(tmp_path, store)


def test_an_empty_manifest_is_an_empty_data_set(tmp_path: Path, store: FolderStore) -> None:
    (tmp_path / "manifest.jsonl").touch()
    assert ingest_folder(tmp_path, store) == Dataset(())


def test_each_sample_is_an_event_of_the_alignment_log(tmp_path: Path, store: FolderStore) -> None:
    stream = io.BytesIO()
    journal = Journal(AlignmentLog(stream), Ticking(), trace_id="t1")
    ingest_folder(whole(tmp_path / "set"), store, journal=journal)
    events = {event["input_id"]: event for event in map(json.loads, stream.getvalue().splitlines())}
    assert events.keys() == {"cat", "rocket"}
    cat = events["cat"]
    assert cat["feature_dims"] == {"audio": [16000], "image": [300, 451, 3], "text": [14]}
    assert cat["processing_ms"] == 2
    assert cat["observed_offsets_ms"] == {}
    assert (cat["pipeline_stage"], cat["trace_id"]) == ("ingest", "t1")
