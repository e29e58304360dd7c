"""First in, first out, within bounds, and never what has expired."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.scheduler import (
    Admitted,
    Depth,
    Dispatch,
    FifoScheduler,
    Idle,
    QueueLimits,
    Refused,
    WorkItem,
)

LIMITS = QueueLimits(rows=4, size_bytes=100)


def item(number: int, *, rows: int = 1, size: int = 10, deadline_ns: int = 1000) -> WorkItem:
    return WorkItem(number, "image", rows, size, 0, deadline_ns)


def test_work_leaves_in_the_order_it_came() -> None:
    scheduler = FifoScheduler(LIMITS)
    assert scheduler.offer([item(1), item(2)], 0) == Admitted()
    assert scheduler.next(0) == Dispatch(item(1))
    assert scheduler.depth == Depth(1, 10, 1)
    assert scheduler.next(0) == Dispatch(item(2))
    assert scheduler.next(0) == Idle()


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([item(1, rows=5)], "too-large"),
        ([item(1, size=101)], "too-large"),
        ([item(1, rows=2)], "queue-rows"),
        ([item(1, size=80)], "queue-bytes"),
        ([item(1, deadline_ns=5)], "expired"),
    ],
)
def test_what_has_no_room_is_refused_whole(items: list[WorkItem], reason: str) -> None:
    scheduler = FifoScheduler(LIMITS)
    scheduler.offer([item(7, rows=3, size=30)], 0)
    refused = scheduler.offer(items, 5)
    assert isinstance(refused, Refused)
    assert refused.reason == reason
    assert scheduler.depth == Depth(3, 30, 0)


def test_the_retry_hint_is_the_time_that_the_backlog_takes() -> None:
    scheduler = FifoScheduler(LIMITS, workers=2)
    scheduler.offer([item(1)], 0)
    scheduler.next(0)
    scheduler.finished(item(1), 2_000_000_000)
    scheduler.offer([item(2, rows=4, deadline_ns=10**12)], 0)
    refused = scheduler.offer([item(3)], 0)
    assert isinstance(refused, Refused)
    assert refused.retry_after_s == pytest.approx(4.0)


def test_expired_work_is_dropped_on_the_way_to_the_next() -> None:
    scheduler = FifoScheduler(LIMITS)
    scheduler.offer([item(1, deadline_ns=5), item(2)], 0)
    assert scheduler.next(5) == Dispatch(item(2), (item(1, deadline_ns=5),))
    scheduler.offer([item(3, deadline_ns=8)], 5)
    assert scheduler.next(9) == Idle((item(3, deadline_ns=8),))


def test_cancelled_work_never_leaves() -> None:
    scheduler = FifoScheduler(LIMITS)
    scheduler.offer([item(1), item(2)], 0)
    assert scheduler.cancel(1, 0) == item(1)
    assert scheduler.cancel(99, 0) is None
    assert scheduler.next(0) == Dispatch(item(2))
    assert scheduler.cancel(2, 0) is None  # it runs
    assert scheduler.depth == Depth(0, 0, 1)


offers = st.tuples(st.just("offer"), st.integers(1, 5), st.integers(0, 60), st.integers(1, 50))
others = st.tuples(st.sampled_from(["next", "finish", "cancel"]), st.integers(0, 20))


@given(st.lists(offers | others, max_size=40))
def test_the_queue_keeps_its_bounds_and_its_books(steps: list[tuple[int | str, ...]]) -> None:
    scheduler, waiting, running = FifoScheduler(LIMITS), {}, {}
    for now_ns, (what, *rest) in enumerate(steps, start=1):
        number = now_ns
        if what == "offer":
            rows, size, left = (int(value) for value in rest)
            work = item(number, rows=rows, size=size, deadline_ns=now_ns + left)
            if isinstance(scheduler.offer([work], now_ns), Admitted):
                waiting[number] = work
        elif what == "next":
            decision = scheduler.next(now_ns)
            for dropped in decision.expired:
                assert waiting.pop(dropped.id).deadline_ns <= now_ns
            if isinstance(decision, Dispatch):
                assert decision.item.id == min(waiting)
                assert decision.item.deadline_ns > now_ns
                running[decision.item.id] = waiting.pop(decision.item.id)
        elif what == "finish" and running:
            scheduler.finished(running.pop(min(running)), now_ns)
        elif what == "cancel":
            scheduler.cancel(int(rest[0]), now_ns)
            waiting.pop(int(rest[0]), None)
        rows = sum(work.rows for work in waiting.values())
        size = sum(work.size_bytes for work in waiting.values())
        assert scheduler.depth == Depth(rows, size, len(running))
        assert rows <= LIMITS.rows
        assert size <= LIMITS.size_bytes


MS = 1_000_000
WIDE = QueueLimits(rows=1000, size_bytes=10**9)


def work(number: int, now_ns: int, *, left_ms: float, source: str = "image") -> WorkItem:
    return WorkItem(number, source, 1, 1, now_ns, now_ns + int(left_ms * MS))


def run(scheduler: FifoScheduler, start_ns: int, taken_ns: int) -> None:
    """The next item, from start to end."""
    decision = scheduler.next(start_ns)
    assert isinstance(decision, Dispatch)
    scheduler.finished(decision.item, start_ns + taken_ns)


def taught(**row_ms: float) -> FifoScheduler:
    """A scheduler that has seen each source take this long."""
    scheduler = FifoScheduler(WIDE)
    for number, (source, taken_ms) in enumerate(row_ms.items(), start=-len(row_ms)):
        scheduler.offer([work(number, 0, left_ms=1, source=source)], 0)
        run(scheduler, 0, int(taken_ms * MS))
    return scheduler


def test_what_would_come_too_late_is_refused_at_once() -> None:
    scheduler = taught(image=10)
    for number in range(7):
        assert scheduler.offer([work(number, 0, left_ms=100)], 0) == Admitted()
    refused = scheduler.offer([work(7, 0, left_ms=80)], 0)
    assert isinstance(refused, Refused)
    assert refused.reason == "queue-wait"
    assert refused.retry_after_s == pytest.approx(0.020)  # 8 of 10 ms, a quarter more, less 80
    assert scheduler.depth.rows == 7
    assert scheduler.offer([work(8, 0, left_ms=200)], 0) == Admitted()


def test_a_request_is_taken_where_any_of_its_branches_is_in_time() -> None:
    scheduler = taught(image=50, text=1)
    scheduler.offer([work(0, 0, left_ms=1000)], 0)
    text, image = work(1, 0, left_ms=80, source="text"), work(2, 0, left_ms=80)
    assert isinstance(scheduler.offer([image], 0), Refused)
    assert scheduler.offer([text, image], 0) == Admitted()


def test_work_that_is_usually_withdrawn_holds_nobody_up() -> None:
    scheduler = taught(image=50, text=1)
    for number in range(30):
        image = work(number, 0, left_ms=10_000)
        assert scheduler.offer([image], 0) == Admitted()
        scheduler.cancel(number, 0)
    scheduler.offer([work(n, 0, left_ms=10_000) for n in range(100, 110)], 0)
    assert scheduler.offer([work(200, 0, left_ms=50, source="text")], 0) == Admitted()


def test_what_runs_counts_for_the_rest_of_its_time() -> None:
    scheduler = taught(image=100)
    scheduler.offer([work(0, 0, left_ms=1000)], 0)
    scheduler.next(0)
    assert isinstance(scheduler.offer([work(1, 0, left_ms=200)], 0), Refused)
    assert scheduler.offer([work(2, 60 * MS, left_ms=200)], 60 * MS) == Admitted()


steps = st.lists(
    st.tuples(
        st.sampled_from(["image", "text"]),
        st.integers(1, 10**12),  # how long it takes
        st.sampled_from(["run", "cancel", "expire"]),
    ),
    max_size=30,
)


@given(steps, st.integers(1, 10**9), st.integers(1, 4))
def test_an_idle_scheduler_refuses_nothing_whatever_it_has_seen(
    history: list[tuple[str, int, str]], left_ns: int, workers: int
) -> None:
    scheduler, now_ns = FifoScheduler(WIDE, workers), 0
    for number, (source, taken_ns, fate) in enumerate(history):
        item = WorkItem(number, source, 1, 1, now_ns, now_ns + 1)
        assert scheduler.offer([item], now_ns) == Admitted()
        if fate == "run":
            run(scheduler, now_ns, taken_ns)
        elif fate == "cancel":
            scheduler.cancel(number, now_ns)
        now_ns += taken_ns
        if fate == "expire":
            assert scheduler.next(now_ns) == Idle((item,))
        assert scheduler.depth == Depth(0, 0, 0)
    last = WorkItem(-1, "image", 1, 1, now_ns, now_ns + left_ns)
    assert scheduler.offer([last], now_ns) == Admitted()


class Served:
    """One worker that takes `taken_ns` for each item, driven along with the arrivals."""

    def __init__(self, scheduler: FifoScheduler, taken_ns: int) -> None:
        self.scheduler = scheduler
        self.in_time = self.late = 0
        self._taken_ns = taken_ns
        self._running: WorkItem | None = None
        self._free_ns = 0

    def arrive(self, item: WorkItem, now_ns: int) -> bool:
        self._work_until(now_ns)
        admitted = isinstance(self.scheduler.offer([item], now_ns), Admitted)
        if admitted and self._running is None:
            self._start(now_ns)
        return admitted

    def _work_until(self, now_ns: int) -> None:
        while self._running is not None and self._free_ns <= now_ns:
            in_time = self._free_ns <= self._running.deadline_ns
            self.in_time, self.late = self.in_time + in_time, self.late + (not in_time)
            self.scheduler.finished(self._running, self._free_ns)
            self._start(self._free_ns)

    def _start(self, now_ns: int) -> None:
        decision = self.scheduler.next(now_ns)
        self.late += len(decision.expired)
        self._running = decision.item if isinstance(decision, Dispatch) else None
        self._free_ns = now_ns + self._taken_ns


@given(st.integers(1, 3600 * 1000), st.integers(1, 9))
def test_after_a_stall_it_comes_to_admit_all_that_it_can_serve(
    stall_ms: int, taken_ms: int
) -> None:
    served = Served(taught(image=stall_ms), taken_ms * MS)
    admitted = [
        served.arrive(work(number, number * 10 * MS, left_ms=300), number * 10 * MS)
        for number in range(200)
    ]
    assert all(admitted[-50:])


@given(st.integers(1, 50), st.integers(2, 20))
def test_under_overload_what_is_admitted_is_done_in_time(taken_ms: int, times: int) -> None:
    served = Served(taught(image=taken_ms), taken_ms * MS)
    for number in range(40 * times):
        now_ns = number * taken_ms * MS // times
        served.arrive(work(number, now_ns, left_ms=300), now_ns)
    assert served.late == 0
    assert served.in_time >= 38
