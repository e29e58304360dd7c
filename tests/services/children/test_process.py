from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.children.errors import ChildCrashed
from services.children.guard import Guard, Limits
from services.children.process import StartedChild
from validators.contracts.errors import DiskFull


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MiB, where this user may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["/bin/mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)],
        check=False, capture_output=True,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip("this user may not mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["/bin/umount", str(folder)], check=True)


def ended_child(folder: Path) -> StartedChild:
    """A child that ended without an answer."""
    log = folder / "log"
    log.touch()
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(1)"])
    guard = Guard(process, "image", Limits(), None)
    process.wait(60)
    return StartedChild(guard, folder / "report", log)


def test_a_child_without_an_answer_crashed(small_disk: Path) -> None:
    with pytest.raises(ChildCrashed):
        ended_child(small_disk).result()


def test_a_child_without_an_answer_on_a_full_disk_ran_out_of_it(small_disk: Path) -> None:
    child = ended_child(small_disk)
    with (small_disk / "fill").open("wb") as stream:
        os.posix_fallocate(stream.fileno(), 0, 6 * 1024**2)
    with pytest.raises(DiskFull, match="image"):
        child.result()
