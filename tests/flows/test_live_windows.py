"""Windows of live requests reach the disk, or wait for the next time."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.live_windows import flush_recorded, may_record
from infra.windows import WindowFolder
from services.gateway.recording import Recorder
from services.gateway.revision import load_revision
from tests.infra.manual_clock import ManualClock
from tests.services.gateway.test_recording import PLAN, offer
from tests.services.gateway.toy import SERVICE, make_toy
from validators.drift.window_file import read_window


def test_what_cannot_be_written_is_written_at_the_next_time(tmp_path: Path) -> None:
    toy, clock = make_toy(tmp_path / "toy", plan=PLAN), ManualClock()
    revision = load_revision("r1", toy.path, toy.loaders())
    recorder, folder = Recorder(clock, seed=3), WindowFolder(
        tmp_path / "windows", SERVICE, b"k" * 32, clock
    )  # fmt: skip
    for _ in range(5):
        offer(recorder, revision)
    recorder.settle()
    assert flush_recorded(recorder, folder) == 0, "too few, and too young"
    (tmp_path / "windows").write_text("a file in the folder's place")
    assert flush_recorded(recorder, folder, everything=True) == 0
    (tmp_path / "windows").unlink()
    assert flush_recorded(recorder, folder) == 1
    recorder.close()
    (entry,) = folder.entries()
    assert entry.bundle == toy.digest
    assert read_window(folder.read(entry)).rows == 5


@pytest.mark.parametrize(("value", "expected"), [("off", False), (" OFF ", False), ("", True)])
def test_a_machine_may_be_told_to_record_nothing(value: str, expected: bool) -> None:
    assert may_record({"MODALGATE_RECORDING": value}) is expected
    assert may_record({})
