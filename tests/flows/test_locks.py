"""Locks that end with their holder, whatever ended it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flows.locks import exclusive, one_of, shared
from validators.contracts.errors import Conflict

HOLDER = """
import sys
from pathlib import Path
from flows import locks
with getattr(locks, sys.argv[1])(*map(Path, sys.argv[2:3]), *sys.argv[3:]):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_elsewhere(kind: str, path: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, kind, str(path), *more],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        assert process.stdout and process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_lock_held_elsewhere_is_a_conflict_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    with (
        held_elsewhere("exclusive", path, "the work"),
        pytest.raises(Conflict) as caught,
        exclusive(path, "the work"),
    ):
        pass
    assert caught.value.what == "the work is running in another process already"
    assert caught.value.remedy


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    with held_elsewhere("exclusive", path, "the work") as process:
        process.kill()
        process.wait()
        with exclusive(path, "the work"):
            pass


def test_sharers_go_together_and_keep_the_one_who_wants_it_alone_out(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    with (
        held_elsewhere("shared", path),
        shared(path),
        pytest.raises(Conflict),
        exclusive(path, "the sweep"),
    ):
        pass
    with exclusive(path, "the sweep"):
        pass


def test_the_third_waits_for_one_of_two_places(tmp_path: Path) -> None:
    places = [tmp_path / "a", tmp_path / "b"]
    inside = threading.Event()

    def third() -> None:
        with one_of(*places):
            inside.set()

    with one_of(*places):
        with one_of(*places):
            waiting = threading.Thread(target=third)
            waiting.start()
            assert not inside.wait(0.5)
        assert inside.wait(60)
        waiting.join()
