from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from services.children.errors import BuildCancelled, ChildCrashed, ChildTimedOut, ChildTooLarge
from services.children.process import Limits, child_environment
from services.children.scratch import scratch
from services.engines.export.encoder import export_encoder
from tests.services.engines.children import builders
from tests.services.engines.models import image_entry
from validators.contracts.errors import DeadlineExceeded, DiskFull, TooLarge, Unavailable

pytestmark = pytest.mark.slow


def _gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def _eventually(holds: Callable[[], bool], patience_s: float = 60.0) -> bool:
    ends = time.monotonic() + patience_s
    while not holds():
        if time.monotonic() > ends:
            return False
        time.sleep(0.1)
    return True


def _nothing_left(workdir: Path) -> bool:
    return not [path for path in workdir.iterdir() if path.is_dir() or path.suffix == ".onnx"]


@pytest.mark.parametrize(("factory", "said"), [("segfaults", "SIGSEGV"), ("exits", "code 7")])
def test_a_child_that_dies_gives_a_clear_error(
    factories: Path, tmp_path: Path, factory: str, said: str
) -> None:
    with pytest.raises(ChildCrashed, match=said) as caught:
        export_encoder(image_entry(factory), factories, tmp_path)
    assert isinstance(caught.value, Unavailable)
    assert "image" in caught.value.where
    assert _nothing_left(tmp_path)


def test_a_child_that_finds_its_disk_full_says_so(factories: Path, tmp_path: Path) -> None:
    with pytest.raises(DiskFull, match="full or over its quota"):
        export_encoder(image_entry("fills_the_disk"), factories, tmp_path)
    assert _nothing_left(tmp_path)


def test_a_child_killed_from_outside_is_reported(factories: Path, tmp_path: Path) -> None:
    def kill(phase: str) -> None:
        if phase == "load":
            for child in builders():
                child.kill()

    with pytest.raises(ChildCrashed, match="SIGKILL"):
        export_encoder(image_entry("hangs"), factories, tmp_path, progress=kill)
    assert _nothing_left(tmp_path)


def test_time_runs_out_and_the_whole_group_goes(
    factories: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    pid_file = tmp_path / "grandchild.pid"
    seen = threading.Event()

    def note(phase: str) -> None:
        if phase == "load":
            seen.set()

    with pytest.raises(ChildTimedOut) as caught:
        export_encoder(
            image_entry("hangs"), factories, tmp_path / "work",
            limits=Limits(timeout_s=12), progress=note,
        )  # fmt: skip
    assert isinstance(caught.value, DeadlineExceeded)
    assert caught.value.remedy
    if pid_file.exists():  # on a loaded machine time may run out before the factory starts
        assert _eventually(lambda: _gone(int(pid_file.read_text())))
    assert _nothing_left(tmp_path / "work")


def test_cancel_ends_the_child_and_what_it_started(
    factories: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    pid_file = tmp_path / "grandchild.pid"
    with pytest.raises(BuildCancelled):
        export_encoder(
            image_entry("hangs"), factories, tmp_path / "work",
            cancel=lambda: pid_file.exists() and bool(pid_file.read_text()),
        )  # fmt: skip
    assert _eventually(lambda: _gone(int(pid_file.read_text())))
    assert _nothing_left(tmp_path / "work")


def test_too_much_memory_ends_the_child(factories: Path, tmp_path: Path) -> None:
    limits = Limits(memory_bytes=900 * 1024**2)
    with pytest.raises(ChildTooLarge, match="over its limit of 900 MiB") as caught:
        export_encoder(image_entry("eats_memory"), factories, tmp_path, limits=limits)
    assert isinstance(caught.value, TooLarge)
    assert _nothing_left(tmp_path)


def test_an_error_of_the_callers_callback_leaves_no_child(factories: Path, tmp_path: Path) -> None:
    def fail(phase: str) -> None:
        raise LookupError(phase)

    with pytest.raises(LookupError):
        export_encoder(image_entry("hangs"), factories, tmp_path, progress=fail)
    assert not builders()


_PARENT = """
import sys
from pathlib import Path
from services.engines.export.encoder import export_encoder
from tests.services.engines.models import image_entry
export_encoder(image_entry("hangs"), Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_killed_parent_leaves_no_child_and_its_scratch_is_swept(
    factories: Path, tmp_path: Path
) -> None:
    environment = os.environ | {"HOME": str(tmp_path), "PYTHONPATH": str(Path.cwd())}
    work = tmp_path / "work"
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(factories), str(work)], env=environment
    )
    pid_file = tmp_path / "grandchild.pid"
    assert _eventually(lambda: pid_file.exists() and bool(pid_file.read_text()), 120)
    children = [child.pid for child in builders(parent.pid)]
    assert len(children) == 1
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert _eventually(lambda: _gone(children[0]))
    os.kill(int(pid_file.read_text()), signal.SIGKILL)  # the factory's own child, not ours to end
    assert not _nothing_left(work)
    with scratch(work):
        pass
    assert _nothing_left(work)


def test_a_scratch_folder_in_use_is_not_swept(tmp_path: Path) -> None:
    with scratch(tmp_path) as first:
        (first / "kept").touch()
        with scratch(tmp_path) as second:
            assert first != second
            assert (first / "kept").exists()
    assert _nothing_left(tmp_path)


def test_secrets_of_the_environment_do_not_reach_the_child(tmp_path: Path) -> None:
    own = {"AWS_SECRET_ACCESS_KEY": "x", "MODALGATE_ADMIN_TOKEN": "x", "LC_ALL": "C", "PATH": "/b"}
    given = child_environment(own, tmp_path)
    assert given.keys() == {
        "LC_ALL", "PATH", "OMP_NUM_THREADS", "PYTHONPATH", "PYTHONHASHSEED", "TMPDIR",
    }  # fmt: skip
