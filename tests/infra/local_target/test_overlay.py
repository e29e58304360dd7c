"""Engines beside a bundle: put there whole or not at all, and taken back where they are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local_target.overlay import find_engine, keep_only, placed_engines, placing
from tests.infra.local_target.places import SERVICE, Place
from validators.contracts.digest import digest_bytes, hex_of
from validators.contracts.errors import BadInput, NotFound, Refused, Unavailable


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    path = tmp_path / "engine"
    path.write_bytes(b"compiled")
    return path


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.target(drain_timeout_s=2).stop(SERVICE)


def put(folder: Path, engine: Path, manifest: bytes = b"sealed", encoder: str = "image") -> None:
    with placing(folder, "rev", encoder, manifest, engine):
        pass


def names(folder: Path) -> set[str]:
    return {path.name for path in (folder / "rev" / "objects").iterdir()}


def test_what_was_placed_is_found_with_its_bytes(tmp_path: Path, engine: Path) -> None:
    put(tmp_path / "engines", engine)
    found = find_engine(tmp_path / "engines", "rev", "image")
    assert found is not None
    assert (found.manifest.read_bytes(), found.engine.read_bytes()) == (b"sealed", b"compiled")
    assert find_engine(tmp_path / "engines", "rev", "text") is None
    assert find_engine(tmp_path / "engines", "other", "image") is None


def test_a_later_one_replaces_it_and_leaves_nothing_behind(tmp_path: Path, engine: Path) -> None:
    folder = tmp_path / "engines"
    put(folder, engine)
    put(folder, engine, b"of text", "text")
    engine.write_bytes(b"compiled later")
    put(folder, engine, b"sealed later")
    found = find_engine(folder, "rev", "image")
    assert found is not None and found.engine.read_bytes() == b"compiled later"
    assert [item.overlay.encoder for item in placed_engines(folder, "rev")] == ["image", "text"]
    kept = (b"sealed later", b"compiled later", b"of text", b"compiled")
    assert names(folder) == {hex_of(digest_bytes(data)) for data in kept}


@pytest.mark.parametrize("before", [False, True])
def test_what_is_refused_is_taken_back(tmp_path: Path, engine: Path, before: bool) -> None:
    folder = tmp_path / "engines"
    if before:
        put(folder, engine)
    engine.write_bytes(b"worse")
    with pytest.raises(RuntimeError), placing(folder, "rev", "image", b"sealed too", engine):
        found = find_engine(folder, "rev", "image")
        assert found is not None and found.engine.read_bytes() == b"worse"
        raise RuntimeError("refused")
    found = find_engine(folder, "rev", "image")
    assert (found is not None) == before
    if found is not None:
        assert found.engine.read_bytes() == b"compiled"
    assert hex_of(digest_bytes(b"worse")) not in names(folder)


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "x" * 200])
def test_a_name_that_is_no_file_is_refused(tmp_path: Path, engine: Path, name: str) -> None:
    for words in ((name, "image"), ("rev", name)):
        with pytest.raises(BadInput), placing(tmp_path / "e", *words, b"sealed", engine):
            pass


def test_an_engine_that_is_not_there_is_not_placed(tmp_path: Path, engine: Path) -> None:
    put(tmp_path / "engines", engine)
    with pytest.raises(NotFound):
        put(tmp_path / "engines", tmp_path / "absent", b"other")
    found = find_engine(tmp_path / "engines", "rev", "image")
    assert found is not None and found.manifest.read_bytes() == b"sealed"


def test_a_damaged_pointer_is_no_engine(tmp_path: Path, engine: Path) -> None:
    put(tmp_path / "engines", engine)
    (tmp_path / "engines" / "rev" / "image.json").write_text('{"encoder":"image"}')
    assert find_engine(tmp_path / "engines", "rev", "image") is None
    put(tmp_path / "engines", engine)
    assert find_engine(tmp_path / "engines", "rev", "image") is not None


def test_a_full_disk_leaves_what_was_there(tiny_disk: Path, tmp_path: Path, engine: Path) -> None:
    put(tiny_disk / "engines", engine)
    engine.write_bytes(bytes(4 << 20))
    with pytest.raises(Unavailable, match="full"):
        put(tiny_disk / "engines", engine, b"too large")
    found = find_engine(tiny_disk / "engines", "rev", "image")
    assert found is not None and found.engine.read_bytes() == b"compiled"
    assert len(names(tiny_disk / "engines")) == 2


def test_only_old_overlays_of_other_revisions_go(tmp_path: Path, engine: Path) -> None:
    folder = tmp_path / "engines"
    for revision in ("kept", "gone"):
        with placing(folder, revision, "image", b"sealed", engine):
            pass
    born_ns = (folder / "gone").stat().st_mtime_ns
    keep_only(folder, {"kept"}, born_ns - 1)
    assert find_engine(folder, "gone", "image") is not None
    keep_only(folder, {"kept"}, born_ns)
    assert find_engine(folder, "gone", "image") is None
    assert find_engine(folder, "kept", "image") is not None
    keep_only(tmp_path / "absent", set(), born_ns)


def test_a_gateway_that_serves_the_revision_is_told(place: Place, engine: Path) -> None:
    target = place.target()
    assert not target.replace_engine(SERVICE, "one", "image", b"before the start", engine)
    target.apply(place.revision("one"))
    assert target.replace_engine(SERVICE, "one", "image", b"sealed", engine)
    assert "replace one image" in place.journal
    assert not target.replace_engine(SERVICE, "other", "image", b"sealed", engine)
    found = target.replaced_engine(SERVICE, "one", "image")
    assert found is not None and found.manifest.read_bytes() == b"sealed"


def test_what_the_gateway_refuses_is_not_in_place_at_its_next_start(
    place: Place, engine: Path
) -> None:
    target = place.target()
    target.apply(place.revision("one"))
    with pytest.raises(Refused, match="no replacement"):
        target.replace_engine(SERVICE, "one", "image", b"refuse", engine)
    assert target.replaced_engine(SERVICE, "one", "image") is None


def test_an_engine_that_takes_the_gateway_down_is_taken_back_and_the_service_comes_up(
    place: Place, engine: Path
) -> None:
    target = place.target()
    before = target.apply(place.revision("one"))
    with pytest.raises(Unavailable):
        target.replace_engine(SERVICE, "one", "image", b"crash", engine)
    assert target.replaced_engine(SERVICE, "one", "image") is None
    after = target.status(SERVICE)
    assert after.stable == "one" and after.pid not in (None, before.pid)


def test_pins_name_what_serves_and_what_is_kept_to_go_back_to(place: Place) -> None:
    target = place.target()
    target.apply(place.revision("one"))
    target.apply(place.revision("two"))
    assert [(pin.role, pin.revision.name) for pin in target.pins()] == [
        ("stable", "one"),
        ("canary", "two"),
    ]
    target.promote(SERVICE)
    assert {(pin.role, pin.revision.name) for pin in target.pins()} == {
        ("stable", "two"),
        ("previous", "one"),
    }
