from __future__ import annotations

from pathlib import Path

import pytest

from infra.objects.folder import FolderStore
from services.deidentify.pipeline import DeidReport, deidentify
from services.deidentify.policy import load_policy
from services.deidentify.pseudonyms import ReleaseKey
from services.ingest.folder import ingest_folder
from tests.services.media_files import encode, picture, tone, wav, write_folder
from validators.contracts.dataset import Dataset, Media, Sample
from validators.contracts.digest import canonical_json
from validators.contracts.documents import load
from validators.contracts.errors import NotFound, Unsupported

pytestmark = pytest.mark.slow

KEY = ReleaseKey(b"a" * 32, "tests")


@pytest.fixture
def quarantine(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "quarantine")


@pytest.fixture
def released(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "released")


@pytest.fixture
def raw(tmp_path: Path, quarantine: FolderStore) -> Dataset:
    rows = [
        {
            "id": "astronaut",
            "image": "a.png",
            "text": "The astronaut Eileen Collins smiling, call +44 20 7946 0958",
            "audio": "a.wav",
            "captured_ms": 5,
        },
        {"id": "coffee", "image": "c.png", "text": "a cup of coffee"},
    ]
    files = {
        "a.png": encode(picture("astronaut")),
        "c.png": encode(picture("coffee")),
        "a.wav": wav(tone()),
    }
    folder = tmp_path / "set"
    folder.mkdir()
    return ingest_folder(write_folder(folder, rows, files), quarantine)


def run(
    raw: Dataset, quarantine: FolderStore, released: FolderStore, key: ReleaseKey = KEY
) -> tuple[Dataset, DeidReport]:
    policy = load_policy("gdpr-captions")
    return deidentify(raw, quarantine=quarantine, released=released, policy=policy, key=key)


def test_face_voice_and_text_are_redacted_together(
    raw: Dataset, quarantine: FolderStore, released: FolderStore
) -> None:
    clean, report = run(raw, quarantine, released)
    astronaut, coffee = clean.samples
    text = astronaut.find("text")
    assert text is not None
    assert released.get(text.digest) == b"The astronaut <PERSON> smiling, call <PHONE_NUMBER>"
    assert [item.media_type for item in astronaut.media] == [
        "application/vnd.modalgate.voice+json", "image/png", "text/plain",
    ]  # fmt: skip
    assert (astronaut.tags, astronaut.captured_ms) == (raw.samples[0].tags, 5)
    cup, before = coffee.find("image"), raw.samples[1].find("image")
    assert cup is not None
    assert before is not None
    assert cup.digest == before.digest, "nothing to hide in a cup"
    assert set(cup.measures) > set(before.measures), "a fingerprint of what is released"
    assert report.counts == (("FACE", 1), ("PERSON", 1), ("PHONE_NUMBER", 1), ("VOICE", 1))
    assert report.media == (("audio", 1), ("image", 2), ("text", 2))


def test_nothing_raw_reaches_the_released_store(
    raw: Dataset, quarantine: FolderStore, released: FolderStore
) -> None:
    run(raw, quarantine, released)
    changed = {item.digest for item in raw.samples[0].media}
    assert not any(released.contains(digest) for digest in changed)


def test_the_report_counts_and_places_and_holds_no_value(
    raw: Dataset, quarantine: FolderStore, released: FolderStore
) -> None:
    _, report = run(raw, quarantine, released)
    document = canonical_json(report)
    assert load(DeidReport, document) == report
    assert b"Collins" not in document
    assert b"7946" not in document
    assert KEY.secret not in document


def test_a_release_can_be_repeated_and_another_key_cannot_be_linked(
    raw: Dataset, quarantine: FolderStore, released: FolderStore
) -> None:
    clean, report = run(raw, quarantine, released)
    assert run(raw, quarantine, released) == (clean, report)
    other, _ = run(raw, quarantine, released, ReleaseKey(b"b" * 32, "tests"))
    assert other.digest != clean.digest


def test_a_modality_that_the_policy_does_not_cover_stops_before_anything_is_written(
    raw: Dataset, quarantine: FolderStore, released: FolderStore
) -> None:
    odd = Media("thermal", quarantine.put(b"heat"), "application/octet-stream")
    with pytest.raises(Unsupported):
        run(Dataset((*raw.samples, Sample("odd", (odd,), ()))), quarantine, released)
    assert list(released.objects()) == []


def test_a_medium_that_is_gone_from_the_quarantine_is_said_to_be(
    raw: Dataset, quarantine: FolderStore, released: FolderStore
) -> None:
    quarantine.delete(raw.samples[0].media[0].digest)
    with pytest.raises(NotFound):
        run(raw, quarantine, released)


def test_an_empty_data_set_stays_empty(quarantine: FolderStore, released: FolderStore) -> None:
    clean, report = run(Dataset(()), quarantine, released)
    assert clean == Dataset(())
    assert report.counts == ()
