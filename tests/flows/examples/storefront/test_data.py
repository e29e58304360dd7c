from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from flows.examples.storefront import data, stamps
from flows.examples.storefront.data import build, build_embedded, build_stamps, split_of
from services.preprocess.media import decode_audio, decode_image
from validators.contracts.errors import BadInput, Unavailable

with_stamps = pytest.mark.skipif(
    not stamps.FOLDER.is_dir(), reason="Debian's tuxpaint-stamps-default is not installed"
)


def rows(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]


def fingerprint(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("embedded")
    build_embedded(folder)
    return folder


def test_every_sample_has_a_picture_a_caption_and_speech(embedded: Path) -> None:
    samples = rows(embedded)
    assert len(samples) == 24
    assert len({sample["id"] for sample in samples}) == 24
    for sample in samples:
        assert decode_image((embedded / sample["image"]).read_bytes()).width > 100
        assert 0.5 < decode_audio((embedded / sample["audio"]).read_bytes()).size / 16_000 < 8
        assert {"sensor", "channels", "lighting", "source", "split"} <= set(sample["tags"])


def test_there_is_something_to_de_identify(embedded: Path) -> None:
    captions = " ".join(sample["text"] for sample in rows(embedded))
    assert "Eileen Collins" in captions
    assert "+1 212 555 0187" in captions
    assert "coffee@example.com" in captions


def test_the_same_packages_give_the_same_bytes(embedded: Path, tmp_path: Path) -> None:
    build_embedded(tmp_path)
    assert fingerprint(tmp_path) == fingerprint(embedded)


def test_building_again_into_the_same_folder_changes_nothing(tmp_path: Path) -> None:
    build_embedded(tmp_path)
    before = fingerprint(tmp_path)
    build_embedded(tmp_path)
    assert fingerprint(tmp_path) == before


def test_a_split_goes_by_content_and_holds_about_a_third_out() -> None:
    sides = [split_of(str(index).encode()) for index in range(2000)]
    assert set(sides) == {"train", "held-out"}
    assert 0.26 < sides.count("held-out") / 2000 < 0.34
    assert split_of(b"picture") == split_of(b"picture")


@pytest.mark.parametrize("choice", ["", "all", "EMBEDDED"])
def test_an_unknown_choice_is_refused(
    choice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(data.VARIABLE, choice)
    with pytest.raises(BadInput, match="auto, embedded, stamps"):
        build(tmp_path)


@pytest.mark.parametrize("choice", ["auto", "embedded"])
def test_without_stamps_the_embedded_set_is_built(
    choice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(data.VARIABLE, choice)
    monkeypatch.setattr(data, "FOLDER", tmp_path / "absent")
    build(tmp_path / "set")
    assert len(rows(tmp_path / "set")) == 24


def test_stamps_that_are_asked_for_and_absent_are_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(data.VARIABLE, "stamps")
    monkeypatch.setattr(data, "FOLDER", tmp_path / "absent")
    with pytest.raises(Unavailable, match="apt-get install"):
        build(tmp_path / "set")


@with_stamps
def test_stamps_come_with_captions_and_speech_within_their_number(tmp_path: Path) -> None:
    build_stamps(tmp_path, limit=30, seed=4)
    samples = rows(tmp_path)
    assert len(samples) == len({sample["id"] for sample in samples}) == 30
    for sample in samples:
        decode_image((tmp_path / sample["image"]).read_bytes())
        assert decode_audio((tmp_path / sample["audio"]).read_bytes()).size / 16_000 < 8


@with_stamps
def test_the_seed_chooses_the_stamps() -> None:
    first, again, other = (
        [stamp.id for stamp in stamps.find_stamps(50, seed=seed)] for seed in (0, 0, 1)
    )
    assert first == again != other
    assert len(stamps.find_stamps(100_000)) > 400


def test_pictures_without_a_caption_and_mirrored_ones_are_no_stamps(tmp_path: Path) -> None:
    for name, caption in [("cat", "A cat."), ("dog", None), ("cow_mirror", "A cow."), ("pig", "")]:
        (tmp_path / "animals").mkdir(exist_ok=True)
        (tmp_path / "animals" / f"{name}.png").write_bytes(b"png")
        if caption is not None:
            (tmp_path / "animals" / f"{name}.txt").write_text(caption)
    (tmp_path / "symbols").mkdir()
    (tmp_path / "symbols" / "a.png").write_bytes(b"png")
    (tmp_path / "symbols" / "a.txt").write_text("The letter a.")
    (tmp_path / "animals" / "cat_desc.ogg").write_bytes(b"ogg")
    found = stamps.find_stamps(9, folder=tmp_path)
    assert [(stamp.id, stamp.caption, stamp.group) for stamp in found] == [
        ("animals-cat", "A cat.", "animals")
    ]
    assert found[0].recording == tmp_path / "animals" / "cat_desc.ogg"
