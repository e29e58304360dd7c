from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from infra.objects.folder import FolderStore
from services.privacy_audit.audit import Audit, audit
from tests.services.media_files import encode, picture, tone, wav
from validators.contracts.dataset import Dataset, Media, Sample
from validators.contracts.errors import Refused
from validators.privacy.gate import PrivacyFind

TYPES = {"image": "image/png", "text": "text/plain", "audio": "audio/wav"}


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "released")


def look(
    store: FolderStore,
    content: bytes,
    modality: str,
    *,
    media_type: str | None = None,
    name: str = "it",
    tags: dict[str, str] | None = None,
) -> Audit:
    media = Media(modality, store.put(content), media_type or TYPES[modality])
    sample = Sample(name, (media,), tuple(sorted((tags or {"sensor": "camera"}).items())))
    return audit(Dataset((sample,)), store)


def test_a_leaked_face_is_named_by_sample_and_place(store: FolderStore) -> None:
    found = look(store, encode(picture("astronaut")), "image").finds
    (face,) = [find for find in found if find.strong]
    assert (face.sample, face.kind) == ("it", "face")
    assert np.abs(np.subtract(face.place, (175, 76, 266, 167))).max() < 12


@pytest.mark.parametrize(
    ("text", "kind", "place"),
    [
        ("The astronaut Eileen Collins smiling", "name", (14, 28)),
        ("call +44 20 7946 0958", "phone", (5, 21)),
        ("身份证11010519491231002X", "id-number", (3, 21)),
        ("card 4111 1111 1111 1111", "payment-number", (5, 24)),
    ],
)
def test_a_leaked_text_is_named_by_sample_and_place(
    store: FolderStore, text: str, kind: str, place: tuple[int, int]
) -> None:
    found = look(store, text.encode(), "text").finds
    assert found == (PrivacyFind("it", "text", kind, place),)


def test_what_the_redaction_put_there_is_clean(store: FolderStore) -> None:
    text = b"<PERSON> and 3c95b56c-862f-4886-b6e4-c98787dc2cc8 on a bicycle"
    result = look(store, text, "text")
    assert result.finds == ()
    assert result.counts.examined == (("text", 1),)


@pytest.mark.parametrize("media_type", ["audio/wav", "application/octet-stream", "text/plain"])
def test_a_playable_voice_is_found_whatever_it_is_called(
    store: FolderStore, media_type: str
) -> None:
    found = look(store, wav(tone()), "audio", media_type=media_type).finds
    assert [find.kind for find in found] == ["voice"]


def test_metadata_in_a_picture_is_found(store: FolderStore) -> None:
    note = PngImagePlugin.PngInfo()
    note.add_text("GPS", "52 31 12")
    found = look(store, encode(Image.new("RGB", (64, 64)), pnginfo=note), "image").finds
    assert [find.kind for find in found] == ["metadata"]


@pytest.mark.parametrize(
    ("content", "modality", "media_type", "reason"),
    [
        (b"no picture", "image", "image/png", "image: not a picture"),
        (b"\xff\xfe", "text", "text/plain", "text: not text"),
        (b"0123", "thermal", "application/octet-stream", "thermal: unknown form"),
        ("一只睡着的猫".encode(), "text", "text/plain", "text: script without a name detector"),
    ],
)
def test_what_no_detector_can_look_into_is_counted_apart(
    store: FolderStore, content: bytes, modality: str, media_type: str, reason: str
) -> None:
    result = look(store, content, modality, media_type=media_type)
    unexamined = [name for name, _ in result.counts.unexamined]
    assert unexamined == [reason]
    assert result.counts.examined == ()


def test_a_tag_that_names_someone_is_found(store: FolderStore) -> None:
    found = look(store, b"a cat", "text", tags={"source": "Eileen Collins, private"}).finds
    assert [(find.modality, find.kind) for find in found] == [("tags", "name")]


def test_an_id_that_names_someone_is_found_and_not_repeated(store: FolderStore) -> None:
    found = look(store, b"a cat", "text", name="eileen_collins-13812345678").finds
    assert {find.kind for find in found} == {"name", "phone"}
    assert {find.sample for find in found} == {"sample-1"}


def test_bytes_that_changed_since_they_were_stored_are_refused(
    tmp_path: Path, store: FolderStore
) -> None:
    media = Media("text", store.put(b"a cat"), "text/plain")
    (stored,) = [path for path in (tmp_path / "released" / "objects").rglob("*") if path.is_file()]
    stored.chmod(0o600)
    stored.write_bytes(b"a dog")
    with pytest.raises(Refused):
        audit(Dataset((Sample("it", (media,), ()),)), store)


def test_the_detectors_are_named_with_their_versions(store: FolderStore) -> None:
    assert len(look(store, b"a cat", "text").detectors) == 4
