from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 2 MiB."""
    point = tmp_path / "disk"
    point.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", str(point).encode(), b"tmpfs", 0, b"size=2m") != 0:
        pytest.skip("only root may mount; a limit on file size covers the rest")
    try:
        yield point
    finally:
        libc.umount2(str(point).encode(), 2)
