"""Which shapes are asked for, and how they reach the queue."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.builds.folder import FolderQueue
from infra.clocks import SystemClock
from services.engines.elastic.engine import ElasticEngine
from services.engines.elastic.filing import BackgroundFiling, Settled
from services.engines.elastic.plan import ElasticPolicy
from services.engines.elastic.wishes import ShapeWishes, Wish
from services.engines.profiles.assign import Sizes
from tests.services.engines.elastic.machines import LARGE, CountingEngine, request
from validators.contracts.builds import BuildQueue, BuildState, QueuedBuild, ShapeRequest
from validators.contracts.digest import Digest, digest_bytes
from validators.contracts.engine import Outside
from validators.contracts.errors import Overloaded, Unavailable

LARGEST = {"batch": 4, "tokens": 16}
POLICY = ElasticPolicy(tuple(Outside))


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(1, 5000)), max_size=200))
def test_whatever_a_client_sends_little_is_asked_for(shapes: list[tuple[int, int]]) -> None:
    wishes = ShapeWishes(LARGEST, factor=4, most=5)
    new = []
    for batch, tokens in shapes:
        wish, sizes = wishes.consider({"batch": batch, "tokens": tokens})
        if batch > 16 or tokens > 64:
            assert wish is Wish.BEYOND
        elif wish is Wish.NEW:
            new.append(sizes)
            rounded = dict(sizes)
            assert batch <= rounded["batch"] <= 16
            assert tokens <= rounded["tokens"] <= 64
    assert len(new) == len(set(new)) <= 5


def test_neighbours_make_one_request_and_a_dropped_one_is_tried_less_and_less_often() -> None:
    wishes = ShapeWishes(LARGEST, factor=4, most=5)
    first, sizes = wishes.consider({"batch": 5, "tokens": 17})
    assert (first, sizes) == (Wish.NEW, (("batch", 6), ("tokens", 24)))
    assert wishes.consider({"batch": 6, "tokens": 24}) == (Wish.KNOWN, sizes)
    wishes.dropped(sizes)
    tries = [at for at in range(3, 70) if wishes.consider({"batch": 6, "tokens": 20})[0] is Wish.NEW
             and wishes.dropped(sizes) is None]  # fmt: skip
    assert tries == [4, 8, 16, 32, 64]


def file_with(
    filing: BackgroundFiling, requests: list[ShapeRequest], policy: ElasticPolicy = POLICY
) -> ElasticEngine:
    def file(key: Digest, sizes: Sizes, told: object) -> None:
        asked = ShapeRequest("service", digest_bytes(b"bundle"), "text", key, sizes)
        requests.append(asked)
        filing.file(asked, lambda _, outcome: told(outcome))  # type: ignore[operator]

    return ElasticEngine(CountingEngine(), policy, file_shape=file)


def test_fifty_threads_with_one_new_shape_file_one_request(tmp_path: Path) -> None:
    queue = FolderQueue(tmp_path / "builds", SystemClock())
    filing, asked = BackgroundFiling(queue), list[ShapeRequest]()
    engine = file_with(filing, asked)
    start = threading.Barrier(50)

    def send(number: int) -> None:
        start.wait(60)
        engine.serve(request(number, 2, 30))
        engine.serve(request(number, 2, 31))

    threads = [threading.Thread(target=send, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    filing.close()
    (build,) = queue.builds()
    assert build.request == asked[0]
    assert dict(build.request.sizes) == {"batch": 2, "tokens": 32}
    assert engine.counts() == {"filed": 1}


def test_what_is_covered_is_not_asked_for_and_a_new_engine_asks_anew(tmp_path: Path) -> None:
    queue = FolderQueue(tmp_path / "builds", SystemClock())
    filing, asked = BackgroundFiling(queue), list[ShapeRequest]()
    engine = file_with(filing, asked)
    engine.serve(request(1, 2, 10))
    engine.serve(request(1, 2, 40))
    engine.swap(CountingEngine(LARGE, "two"))
    engine.serve(request(1, 2, 30))  # covered by now
    engine.serve(request(1, 2, 40))
    engine.serve(request(1, 2, 4000))
    filing.close()
    assert [dict(item.sizes)["tokens"] for item in asked] == [48, 48]
    assert asked[0].engine_key != asked[1].engine_key
    assert engine.counts() == {"filed": 2, "swaps": 1, "beyond": 1}


def test_beyond_declared_bounds_nothing_is_asked_for(tmp_path: Path) -> None:
    filing = BackgroundFiling(FolderQueue(tmp_path / "builds", SystemClock()))
    asked: list[ShapeRequest] = []
    engine = file_with(filing, asked, dataclasses.replace(POLICY, bounded=True))
    engine.serve(request(1, 2, 40))
    engine.serve(request(1, 2, 10))
    filing.close()
    assert not asked and engine.counts() == {"beyond": 1}


class BrokenQueue(BuildQueue):
    """A queue that never takes anything."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.asked = threading.Event()
        self.go_on = threading.Event()

    def file(self, request: ShapeRequest) -> bool:
        self.asked.set()
        assert self.go_on.wait(60)
        raise self.error

    def builds(self, service: str | None = None) -> Sequence[QueuedBuild]:
        return ()

    def take(self) -> QueuedBuild | None:
        return None

    def settle(
        self, request: ShapeRequest, state: BuildState, message: str = "", *, tried: bool = True
    ) -> None: ...

    def reopen(self, request: ShapeRequest) -> bool:
        return False

    def forget(self, request: ShapeRequest) -> None: ...


@pytest.mark.parametrize("error", [Overloaded("full"), Unavailable("disk"), RuntimeError("odd")])
def test_a_queue_that_hangs_or_fails_touches_no_request(error: Exception) -> None:
    queue = BrokenQueue(error)
    filing = BackgroundFiling(queue)
    engine = file_with(filing, [])
    for tokens in (17, 30, 40, 60):
        assert engine.serve(request(1, 1, tokens)).degraded  # while the queue hangs
    assert queue.asked.wait(60)
    queue.go_on.set()
    filing.close()
    assert engine.counts() == {"dropped": 4}


def test_what_does_not_fit_before_the_queue_is_dropped() -> None:
    queue = BrokenQueue(Overloaded("full"))
    filing = BackgroundFiling(queue)
    told: list[str] = []
    settled: Settled = lambda _, outcome: told.append(outcome)  # noqa: E731
    for number in range(80):
        filing.file(
            ShapeRequest("s", digest_bytes(b"b"), "text", digest_bytes(b"k"), (("n", number),)),
            settled,
        )
    assert len(told) >= 14
    queue.go_on.set()
    filing.close()
    assert told == ["dropped"] * 80
