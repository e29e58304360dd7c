from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.ingest.enclosure import FileRefused, read_inside


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "set"
    (inside / "media").mkdir(parents=True)
    (inside / "media" / "a.txt").write_bytes(b"inside")
    (tmp_path / "secret.txt").write_bytes(b"outside")
    return inside


def reason(folder: Path, name: str, limit_bytes: int = 100) -> str:
    with pytest.raises(FileRefused) as refusal:
        read_inside(folder, name, limit_bytes)
    return refusal.value.reason


def test_a_file_inside_is_read(folder: Path) -> None:
    assert read_inside(folder, "media/a.txt", 6) == b"inside"


@pytest.mark.parametrize(
    "name",
    [
        "../secret.txt",
        "media/../../secret.txt",
        "/etc/passwd",
        "..",
        "",
        "a\0b",
        "media\\..\\a.txt",
    ],
)
def test_a_name_that_leads_outside_is_refused(folder: Path, name: str) -> None:
    assert reason(folder, name) == "path-outside-folder"


def test_a_link_to_the_outside_is_refused(folder: Path) -> None:
    (folder / "link.txt").symlink_to(folder.parent / "secret.txt")
    (folder / "up").symlink_to(folder.parent, target_is_directory=True)
    assert reason(folder, "link.txt") == "path-outside-folder"
    assert reason(folder, "up/secret.txt") == "path-outside-folder"


def test_a_link_within_the_folder_is_followed(folder: Path) -> None:
    (folder / "again.txt").symlink_to(folder / "media" / "a.txt")
    assert read_inside(folder, "again.txt", 6) == b"inside"


def test_a_missing_file_is_named_as_such(folder: Path) -> None:
    assert reason(folder, "media/b.txt") == "missing-file"


def test_a_file_over_its_bound_is_refused(folder: Path) -> None:
    assert reason(folder, "media/a.txt", limit_bytes=5) == "file-too-large"


def test_a_folder_and_a_pipe_are_no_files(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    assert reason(folder, "pipe") == "not-a-file"
    assert reason(folder, "media") == "not-a-file"


def test_a_loop_of_links_ends(folder: Path) -> None:
    (folder / "loop").symlink_to(folder / "loop")
    assert reason(folder, "loop") == "unreadable-file"
