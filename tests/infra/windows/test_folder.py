"""Recorded windows: whole or absent, sealed to their place, gone in time."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from infra.clocks import SystemClock
from infra.windows import Bounds, Entry, WindowFolder
from tests.infra.manual_clock import ManualClock
from validators.contracts.digest import Digest, digest_bytes, hex_of
from validators.contracts.errors import DiskFull, Refused, TooLarge, Unavailable

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
BUNDLE, NEXT = digest_bytes(b"bundle"), digest_bytes(b"next")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def folder(tmp_path: Path, clock: ManualClock) -> WindowFolder:
    return WindowFolder(tmp_path / "shop", "shop", KEY, clock)


def file_of(tmp_path: Path, entry: Entry) -> Path:
    return tmp_path / "shop" / hex_of(entry.bundle) / entry.name


def test_windows_come_back_oldest_first(folder: WindowFolder, clock: ManualClock) -> None:
    assert folder.entries() == []
    for number, bundle in enumerate((BUNDLE, NEXT, BUNDLE)):
        folder.put(bundle, f"window {number}".encode())
        clock.advance(1)
    found = folder.entries()
    assert [entry.bundle for entry in found] == [BUNDLE, NEXT, BUNDLE]
    assert [folder.read(entry) for entry in found] == [b"window 0", b"window 1", b"window 2"]


def test_files_are_sealed_and_the_owner_s_alone(folder: WindowFolder, tmp_path: Path) -> None:
    entry = folder.put(BUNDLE, b"vectors of Ada")
    path = file_of(tmp_path, entry)
    assert b"Ada" not in path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", [
    lambda data: b"", lambda data: data[:20], lambda data: data[:-1],
    lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:], lambda data: data + b"x",
    lambda data: b"\x93NUMPY" + data,
])  # fmt: skip
def test_a_damaged_window_is_refused_and_stays_until_it_is_put_aside(
    folder: WindowFolder, tmp_path: Path, damage: object
) -> None:
    entry = folder.put(BUNDLE, b"w" * 100)
    path = file_of(tmp_path, entry)
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(Refused):
        folder.read(entry)
    assert [item.name for item in folder.entries()] == [entry.name]
    assert path.exists(), "reading moves nothing"
    folder.put_aside(entry)
    assert folder.entries() == []
    assert not path.exists()
    assert path.with_name(path.name + ".damaged").exists()


def test_a_window_opens_at_its_own_place_only(
    folder: WindowFolder, tmp_path: Path, clock: ManualClock
) -> None:
    entry = folder.put(BUNDLE, b"window")
    moved = Entry(NEXT, entry.recorded_ms, entry.window, entry.size_bytes)
    shutil.copytree(file_of(tmp_path, entry).parent, file_of(tmp_path, moved).parent)
    assert folder.read(entry) == b"window"
    with pytest.raises(Refused, match="changed"):
        folder.read(moved)
    elsewhere = WindowFolder(tmp_path / "shop", "other", KEY, clock)
    with pytest.raises(Refused):
        elsewhere.read(entry)


def test_without_its_key_a_window_is_forgotten(
    folder: WindowFolder, tmp_path: Path, clock: ManualClock
) -> None:
    entry = folder.put(BUNDLE, b"window")
    with pytest.raises(Refused, match="another key"):
        WindowFolder(tmp_path / "shop", "shop", OTHER_KEY, clock).read(entry)


def test_age_count_and_bytes_are_bounded(tmp_path: Path, clock: ManualClock) -> None:
    bounds = Bounds(files=5, size_bytes=700, age_s=100)
    folder = WindowFolder(tmp_path / "shop", "shop", KEY, clock, bounds)
    for number in range(20):
        folder.put(BUNDLE, bytes([number]) * 10)
        clock.advance(1)
    assert [folder.read(entry)[0] for entry in folder.entries()] == [15, 16, 17, 18, 19]
    folder.put(NEXT, b"x" * 600)
    assert len(folder.entries()) < 5
    assert folder.entries()[-1].bundle == NEXT
    clock.advance(200)
    assert folder.retain() > 0
    assert folder.entries() == []
    assert list((tmp_path / "shop").iterdir()) == []


def test_a_clock_that_went_back_does_not_keep_windows_for_ever(
    folder: WindowFolder, clock: ManualClock
) -> None:
    folder.put(BUNDLE, b"window")
    clock.advance(-30 * 24 * 3600)
    folder.put(BUNDLE, b"later")
    assert [folder.read(entry) for entry in folder.entries()] == [b"later"]


def test_everything_can_be_forgotten(folder: WindowFolder, tmp_path: Path) -> None:
    for number in range(3):
        folder.put(BUNDLE, bytes([number]))
    folder.put_aside(folder.entries()[0])
    assert folder.forget() == 3
    assert folder.entries() == []


def test_a_window_that_is_too_large_is_refused(folder: WindowFolder) -> None:
    with pytest.raises(TooLarge):
        folder.put(BUNDLE, bytes(64 * 1024 * 1024 + 1))


def test_a_full_disk_leaves_nothing_partial(
    folder: WindowFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(DiskFull):
        folder.put(BUNDLE, b"window")
    monkeypatch.undo()
    assert folder.entries() == []
    assert not [path for path in (tmp_path / "shop").rglob("*") if path.is_file()]


def test_a_window_that_another_watch_removed_is_unavailable(
    folder: WindowFolder, tmp_path: Path
) -> None:
    entry = folder.put(BUNDLE, b"window")
    file_of(tmp_path, entry).unlink()
    with pytest.raises(Unavailable):
        folder.read(entry)
    folder.put_aside(entry)


def test_strange_files_are_left_alone(folder: WindowFolder, tmp_path: Path) -> None:
    folder.put(BUNDLE, b"window")
    (tmp_path / "shop" / "notes").mkdir()
    (tmp_path / "shop" / hex_of(BUNDLE) / "readme.txt").write_text("mine")
    assert len(folder.entries()) == 1
    folder.forget()
    assert (tmp_path / "shop" / hex_of(BUNDLE) / "readme.txt").exists()


_WRITER = """
import sys
from pathlib import Path
from infra.clocks import SystemClock
from infra.windows import WindowFolder
folder = WindowFolder(Path(sys.argv[1]), "shop", b"k" * 32, SystemClock())
number = 0
while True:
    number += 1
    folder.put(sys.argv[2], bytes([number % 256]) * 200_000 + sys.argv[3].encode() + b"%d" % number)
    print(number, flush=True)
"""


@pytest.mark.slow
def test_writers_killed_at_any_moment_leave_whole_windows(tmp_path: Path) -> None:
    digest: Digest = BUNDLE
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path / "shop"), digest, str(number)],
            stdout=subprocess.PIPE,
        )
        for number in range(2)
    ]
    for writer in writers:
        assert writer.stdout is not None
        for _ in range(10):
            assert writer.stdout.readline()
    for writer in writers:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        assert writer.stdout is not None
        writer.stdout.close()
    folder = WindowFolder(tmp_path / "shop", "shop", KEY, SystemClock())
    found = folder.entries()
    assert len(found) >= 20
    assert all(len(folder.read(entry)) > 200_000 for entry in found)
    folder.retain()
    assert not list((tmp_path / "shop" / hex_of(digest)).glob(".*"))
