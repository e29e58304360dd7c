from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.ingest.media import MediaFile
from validators.contracts.errors import BadInput, NotFound, TooLarge


def test_views_of_one_file_do_not_move_each_other(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    with MediaFile.open(tmp_path / "a", limit_bytes=10) as file, file.view() as one:
        with file.view() as two:
            assert (one.read(4), two.read(2), one.read(2)) == (b"0123", b"01", b"45")
            assert one.seek(-1, os.SEEK_END) == 9
            assert (one.read(), two.read(1)) == (b"9", b"2")
        assert file.head(3) == b"012"


def test_a_view_ends_where_the_file_ended_when_it_was_checked(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"0123")
    with MediaFile.open(path, limit_bytes=4) as file, file.view() as view:
        with path.open("ab") as more:
            more.write(b"4567")
        assert view.read() == b"0123"
        assert file.head(100) == b"0123"


def test_an_open_descriptor_is_taken_over_and_closed_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"data")
    descriptor = os.open(tmp_path / "a", os.O_RDONLY)
    with MediaFile.adopt(descriptor, name="row-1", limit_bytes=4) as file:
        assert (file.name, file.size_bytes, file.head(9)) == ("row-1", 4, b"data")
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(descriptor)


def test_what_is_no_readable_file_within_its_bound_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "large").write_bytes(b"12345")
    (tmp_path / "link").symlink_to(tmp_path / "large")
    os.mkfifo(tmp_path / "pipe")
    for name, expected in [
        ("none", NotFound),
        ("empty", BadInput),
        ("large", TooLarge),
        ("link", BadInput),
        ("pipe", BadInput),
        (".", BadInput),
    ]:
        with pytest.raises(expected):
            MediaFile.open(tmp_path / name, limit_bytes=4)
