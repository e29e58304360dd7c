"""Recorded shapes reach the disk, or wait for the next time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from flows.shape_windows import flush_windows
from services.engines.profiles.records import read_windows
from services.gateway.revision import load_revision
from services.gateway.revisions import Revisions
from services.gateway.traffic import Traffic
from tests.services.gateway.toy import SERVICE, make_toy


def served(tmp_path: Path) -> Revisions:
    toy = make_toy(tmp_path / "toy")
    revisions = Revisions(SERVICE)
    revisions.add(load_revision("r1", toy.path, toy.loaders()))
    revisions.set_traffic(Traffic("r1"))
    return revisions


def ask(revisions: Revisions, batch: int) -> None:
    found = revisions.find("r1")
    assert found is not None
    found.revision.encoder("image").engine.serve({"pixels": np.zeros((batch, 3, 8, 8), np.float32)})


def test_each_flush_adds_a_window_of_what_came_since(tmp_path: Path) -> None:
    revisions, folder = served(tmp_path), tmp_path / "shapes"
    assert flush_windows(revisions, folder) == 0
    for batch in (1, 2):
        ask(revisions, batch)
        ask(revisions, 3)
        assert flush_windows(revisions, folder) == 1
    windows = read_windows((folder / "image.json").read_bytes())
    assert [[item.sizes for item in window.counts] for window in windows] == [
        [(1,), (3,)], [(2,), (3,)]
    ]  # fmt: skip


def test_what_could_not_be_written_is_part_of_the_next_window(tmp_path: Path) -> None:
    revisions, folder = served(tmp_path), tmp_path / "shapes"
    folder.write_text("a file in the folder's place")
    ask(revisions, 1)
    assert flush_windows(revisions, folder) == 0
    folder.unlink()
    ask(revisions, 1)
    assert flush_windows(revisions, folder) == 1
    (window,) = read_windows((folder / "image.json").read_bytes())
    assert window.total == 2
