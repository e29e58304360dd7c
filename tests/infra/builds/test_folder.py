from __future__ import annotations

import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infra.builds import FolderQueue
from infra.builds import folder as module
from infra.clocks import SystemClock
from tests.infra.manual_clock import ManualClock
from validators.contracts.builds import BuildState, ShapeRequest
from validators.contracts.digest import digest_bytes, hex_of
from validators.contracts.errors import BadInput, Conflict, Overloaded, Unavailable


def request(rows: int = 4, service: str = "shop") -> ShapeRequest:
    return ShapeRequest(
        service, digest_bytes(b"bundle"), "image", digest_bytes(b"engine"), (("batch", rows),)
    )


@pytest.fixture
def queue(tmp_path: Path) -> FolderQueue:
    return FolderQueue(tmp_path / "builds", ManualClock())


def states(queue: FolderQueue) -> list[BuildState]:
    return [build.state for build in queue.builds()]


def test_a_request_is_filed_once_whatever_becomes_of_it(queue: FolderQueue) -> None:
    assert queue.file(request())
    assert not queue.file(request())
    taken = queue.take()
    assert taken is not None and taken.request == request() and taken.tries == 1
    assert not queue.file(request())
    queue.settle(request(), BuildState.DONE)
    assert not queue.file(request())
    assert states(queue) == [BuildState.DONE]


def test_the_oldest_is_taken_first_and_nothing_is_taken_twice(tmp_path: Path) -> None:
    clock = ManualClock()
    queue = FolderQueue(tmp_path / "builds", clock)
    for rows in (9, 3, 5):
        queue.file(request(rows))
        clock.advance(1)
    other = FolderQueue(tmp_path / "builds", clock)
    taken = [item for item in (queue.take(), other.take(), queue.take(), other.take()) if item]
    assert [dict(item.request.sizes)["batch"] for item in taken] == [9, 3, 5]


def test_builds_of_one_service_are_listed_oldest_first(tmp_path: Path) -> None:
    clock = ManualClock()
    queue = FolderQueue(tmp_path / "builds", clock)
    for rows, service in ((2, "shop"), (4, "desk"), (8, "shop")):
        queue.file(request(rows, service))
        clock.advance(1)
    assert [build.request.sizes[0][1] for build in queue.builds("shop")] == [2, 8]
    assert len(queue.builds()) == 3


def test_fifty_threads_and_four_processes_file_one_shape_once(tmp_path: Path) -> None:
    folder = tmp_path / "builds"
    go = tmp_path / "go"
    program = (
        "import sys, pathlib; from infra.builds import FolderQueue; "
        "from infra.clocks import SystemClock; from tests.infra.builds.test_folder import request; "
        "queue = FolderQueue(pathlib.Path(sys.argv[1]), SystemClock())\n"
        "while not pathlib.Path(sys.argv[2]).exists(): pass\n"
        "print(int(queue.file(request())))"
    )
    command = [sys.executable, "-c", program, str(folder), str(go)]
    others = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    barrier = threading.Barrier(50)

    def file_together(_: int) -> bool:
        queue = FolderQueue(folder, SystemClock())
        barrier.wait()
        return queue.file(request())

    with ThreadPoolExecutor(50) as pool:
        waiting = pool.map(file_together, range(50))
        go.touch()
        won = sum(waiting)
    won += sum(int(other.communicate()[0]) for other in others)
    queue = FolderQueue(folder, SystemClock())
    assert won == 1
    assert states(queue) == [BuildState.WAITING]
    assert queue.take() is not None
    assert queue.take() is None


_BUILDER = """
import pathlib, sys, time
from infra.builds import FolderQueue
from infra.clocks import SystemClock
assert FolderQueue(pathlib.Path(sys.argv[1]), SystemClock()).take() is not None
print("taken", flush=True)
time.sleep(600)
"""


def test_the_request_of_a_killed_builder_waits_again_and_fails_after_three_tries(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "builds"
    queue = FolderQueue(folder, SystemClock())
    queue.file(request())
    for _ in range(module.MAX_TRIES):
        builder = subprocess.Popen(
            [sys.executable, "-c", _BUILDER, str(folder)], stdout=subprocess.PIPE, text=True
        )
        assert builder.stdout is not None
        assert builder.stdout.readline() == "taken\n"
        assert states(queue) == [BuildState.BUILDING]
        assert queue.take() is None
        builder.send_signal(signal.SIGKILL)
        builder.communicate()
        assert states(queue) == [BuildState.WAITING]
    assert queue.take() is None
    (build,) = queue.builds()
    assert build.state is BuildState.FAILED
    assert build.message == "its builder died 3 times"


def test_waiting_again_is_a_try_and_the_last_one_fails_with_its_message(
    queue: FolderQueue,
) -> None:
    queue.file(request())
    for number in range(1, module.MAX_TRIES + 1):
        taken = queue.take()
        assert taken is not None and taken.tries == number
        queue.settle(request(), BuildState.WAITING, "the store is down")
    (build,) = queue.builds()
    assert (build.state, build.message) == (BuildState.FAILED, "the store is down")
    assert queue.take() is None


def test_what_was_no_try_waits_with_the_tries_it_had(queue: FolderQueue) -> None:
    queue.file(request())
    for _ in range(module.MAX_TRIES + 1):
        taken = queue.take()
        assert taken is not None and taken.tries == 1
        queue.settle(request(), BuildState.WAITING, "the disk is full", tried=False)
    (build,) = queue.builds()
    assert (build.state, build.tries) == (BuildState.WAITING, 0)
    assert build.message == "the disk is full"


@pytest.mark.parametrize("ended", [BuildState.DONE, BuildState.FAILED])
def test_what_has_ended_waits_again_with_all_its_tries_when_reopened(
    queue: FolderQueue, ended: BuildState
) -> None:
    assert not queue.reopen(request())
    queue.file(request())
    assert not queue.reopen(request())
    queue.take()
    assert not queue.reopen(request())
    queue.settle(request(), ended)
    assert queue.reopen(request())
    taken = queue.take()
    assert taken is not None and taken.tries == 1


def test_only_the_builder_that_took_a_request_settles_it(tmp_path: Path) -> None:
    clock = ManualClock()
    ours, theirs = (FolderQueue(tmp_path / "builds", clock) for _ in range(2))
    ours.file(request())
    with pytest.raises(Conflict):
        ours.settle(request(), BuildState.DONE)
    assert ours.take() is not None
    with pytest.raises(Conflict):
        theirs.settle(request(), BuildState.DONE)
    with pytest.raises(BadInput):
        ours.settle(request(), BuildState.BUILDING)
    ours.settle(request(), BuildState.FAILED, "no such encoder")
    assert theirs.builds()[0].message == "no such encoder"


def test_a_forgotten_request_may_be_filed_again_and_one_in_work_is_not_forgotten(
    queue: FolderQueue,
) -> None:
    queue.file(request())
    queue.take()
    with pytest.raises(Conflict, match="being built"):
        queue.forget(request())
    queue.settle(request(), BuildState.FAILED, "too large")
    queue.forget(request())
    queue.forget(request())
    assert queue.builds() == []
    assert queue.file(request())


def test_too_many_waiting_requests_are_refused(tmp_path: Path) -> None:
    queue = FolderQueue(tmp_path / "builds", ManualClock(), max_waiting=3)
    for rows in (1, 2, 3):
        queue.file(request(rows))
    with pytest.raises(Overloaded) as refused:
        queue.file(request(4))
    assert refused.value.retry_after_s
    assert not queue.file(request(3))
    taken = queue.take()
    assert taken is not None
    queue.settle(taken.request, BuildState.DONE)
    assert queue.file(request(4))


def test_the_oldest_settled_requests_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT_SETTLED", 2)
    clock = ManualClock()
    queue = FolderQueue(tmp_path / "builds", clock)
    for rows in range(1, 6):
        queue.file(request(rows))
        queue.take()
        queue.settle(request(rows), BuildState.DONE)
        clock.advance(1)
    assert [build.request.sizes[0][1] for build in queue.builds()] == [3, 4, 5]


@pytest.mark.parametrize("damage", [b"", b"{", b"{}", b"\xff\xfe"])
def test_a_damaged_file_is_no_request_and_filing_replaces_it(tmp_path: Path, damage: bytes) -> None:
    queue = FolderQueue(tmp_path / "builds", ManualClock())
    queue.file(request())
    (tmp_path / "builds" / f"{hex_of(request().key)}.json").write_bytes(damage)
    assert queue.builds() == []
    assert queue.take() is None
    assert queue.file(request())
    assert states(queue) == [BuildState.WAITING]


def test_a_request_under_another_name_is_not_believed(tmp_path: Path) -> None:
    queue = FolderQueue(tmp_path / "builds", ManualClock())
    queue.file(request(1))
    place = tmp_path / "builds" / f"{hex_of(request(1).key)}.json"
    place.rename(place.with_name(f"{hex_of(request(2).key)}.json"))
    assert queue.builds() == []


def test_a_full_disk_is_unavailable_and_leaves_nothing_partial(tiny_disk: Path) -> None:
    queue = FolderQueue(tiny_disk / "builds", ManualClock())
    queue.file(request(1))
    with (tiny_disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError):
        while True:
            filler.write(bytes(4096))
    before = sorted((tiny_disk / "builds").iterdir())
    with pytest.raises(Unavailable, match="full"):
        queue.file(request(2))
    assert sorted((tiny_disk / "builds").iterdir()) == before
    with pytest.raises(Unavailable, match="full"):
        queue.take()
    assert states(queue) == [BuildState.WAITING]
    (tiny_disk / "filler").unlink()
    assert queue.file(request(2))
    assert queue.take() is not None


def test_a_disk_that_fills_while_building_leaves_the_request_waiting(tiny_disk: Path) -> None:
    queue = FolderQueue(tiny_disk / "builds", ManualClock())
    queue.file(request())
    queue.take()
    with (tiny_disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError):
        while True:
            filler.write(bytes(4096))
    with pytest.raises(Unavailable, match="full"):
        queue.settle(request(), BuildState.DONE)
    (tiny_disk / "filler").unlink()
    assert states(queue) == [BuildState.WAITING]


def test_the_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    queue = FolderQueue(tmp_path / "builds", ManualClock())
    queue.file(request())
    queue.take()
    assert (tmp_path / "builds").stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "builds").iterdir())


_Steps = st.lists(
    st.tuples(st.sampled_from(["file", "take", "settle", "forget"]), st.integers(0, 2)),
    max_size=30,
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=_Steps)
def test_any_order_of_calls_keeps_every_request_once_and_held_by_one(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("queue")
    queues = [FolderQueue(folder, ManualClock()) for _ in range(2)]
    known: dict[int, BuildState] = {}
    held: dict[int, int] = {}
    for number, (step, rows) in enumerate(steps):
        queue, which = queues[number % 2], number % 2
        if step == "file":
            assert queue.file(request(rows)) == (rows not in known)
            known.setdefault(rows, BuildState.WAITING)
        elif step == "take":
            taken = queue.take()
            waiting = {item for item, state in known.items() if state is BuildState.WAITING}
            assert (taken is not None) == bool(waiting)
            if taken is not None:
                got = taken.request.sizes[0][1]
                assert got in waiting
                known[got], held[got] = BuildState.BUILDING, which
        elif step == "settle" and held.get(rows) == which:
            queue.settle(request(rows), BuildState.DONE)
            known[rows] = BuildState.DONE
            del held[rows]
        elif step == "forget" and known.get(rows) is not BuildState.BUILDING:
            queue.forget(request(rows))
            known.pop(rows, None)
    assert {b.request.sizes[0][1]: b.state for b in queues[0].builds()} == known


def test_a_request_is_named_by_everything_that_decides_its_build() -> None:
    one = request()
    others = [
        replace(one, service="desk"),
        replace(one, encoder="text"),
        replace(one, engine_key=digest_bytes(b"other")),
        replace(one, sizes=(("batch", 5),)),
    ]
    assert len({item.key for item in (one, *others)}) == 5
