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
    scheduler.cancel(1)
    scheduler.cancel(99)
    assert scheduler.next(0) == Dispatch(item(2))
    scheduler.cancel(2)
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
            scheduler.cancel(int(rest[0]))
            waiting.pop(int(rest[0]), None)
        rows = sum(work.rows for work in waiting.values())
        size = sum(work.size_bytes for work in waiting.values())
        assert scheduler.depth == Depth(rows, size, len(running))
        assert rows <= LIMITS.rows
        assert size <= LIMITS.size_bytes
