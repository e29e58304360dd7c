from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from infra import files
from validators.contracts.errors import BadInput, ModalgateError, Refused, Unavailable


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_whole_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "document"
    files.write_atomically(path, b"first")
    files.write_atomically(path, b"second")
    assert path.read_bytes() == b"second"
    assert path.stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == ["document"]


def test_what_is_not_published_is_gone(tmp_path: Path) -> None:
    with pytest.raises(BadInput), files.stage(tmp_path) as staged:
        staged.write(b"half")
        raise BadInput("the caller gave up")
    assert names(tmp_path) == []


def test_of_two_that_publish_anew_the_second_is_told(tmp_path: Path) -> None:
    path = tmp_path / "once"
    for data, first in ((b"one", True), (b"two", False)):
        with files.stage(tmp_path) as staged:
            staged.write(data)
            assert staged.publish_new(path) is first
    assert path.read_bytes() == b"one"
    assert names(tmp_path) == ["once"]


def test_leftovers_are_swept_by_label(tmp_path: Path) -> None:
    for name in (".a[1].1-0.part", ".b.1-0.part", "a.part"):
        (tmp_path / name).write_bytes(b"")
    assert files.sweep(tmp_path, "a[1]") == 1
    assert names(tmp_path) == [".b.1-0.part", "a.part"]
    assert files.sweep(tmp_path) == 1
    assert names(tmp_path) == ["a.part"]


def test_sweepers_never_take_a_file_from_a_living_writer(tmp_path: Path) -> None:
    stop = threading.Event()

    def sweep_on() -> None:
        while not stop.is_set():
            files.sweep(tmp_path)

    def write(number: int) -> bytes:
        path = tmp_path / str(number)
        with files.stage(tmp_path) as staged:
            staged.write(b"whole")
            staged.publish(path)
        return path.read_bytes()

    with ThreadPoolExecutor(4) as pool:
        sweepers = [pool.submit(sweep_on) for _ in range(2)]
        assert set(pool.map(write, range(200))) == {b"whole"}
        stop.set()
        for sweeper in sweepers:
            sweeper.result()
    assert len(names(tmp_path)) == 200


_HOLDER = """
import sys, time
from pathlib import Path
from infra.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(3600)
"""


def test_a_lock_ends_with_its_holder_however_that_died(tmp_path: Path) -> None:
    lock, entered = tmp_path / "lock", threading.Event()
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(lock)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"

    def wait_for_it() -> None:
        with files.locked(lock):
            entered.set()

    waiter = threading.Thread(target=wait_for_it)
    waiter.start()
    assert not entered.wait(0.2)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    waiter.join()
    assert entered.is_set()


def test_a_lock_is_free_again_even_while_a_forked_child_lives(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    reading, writing = os.pipe()
    with files.locked(lock):
        child = os.fork()
        if child == 0:
            os.read(reading, 1)
            os._exit(0)
    with files.locked(lock):
        os.write(writing, b"x")
    os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(
    ("number", "kind", "advice"),
    [
        (errno.ENOSPC, Unavailable, "Free space"),
        (errno.EDQUOT, Unavailable, "Free space"),
        (errno.EFBIG, Unavailable, "Free space"),
        (errno.EIO, Unavailable, "Mount it"),
        (errno.EACCES, Unavailable, "Mount it"),
        (errno.EROFS, Unavailable, "Mount it"),
        (errno.ELOOP, Refused, "Remove the link"),
    ],
)
def test_a_refusal_of_the_system_says_what_to_do(
    number: int, kind: type[ModalgateError], advice: str
) -> None:
    with pytest.raises(kind, match=advice), files.disk_faults("the thing", "here", "Mount it"):
        raise OSError(number, "refused")


def test_our_own_errors_pass_unchanged() -> None:
    with pytest.raises(BadInput, match="mine"), files.disk_faults("the thing", "here", ""):
        raise BadInput("mine")


def test_a_private_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    files.make_private_folder(tmp_path / "a" / "b")
    files.make_private_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError):
        files.make_private_folder(tmp_path / "file")
