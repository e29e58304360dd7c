"""Which work item runs next, and whether there is room for another. No clock, no thread.

`FifoScheduler` is first-in-first-out within bounds of rows and bytes; expired work is never
dispatched, and what would expire before it is done is refused at once, while its sender can still
go elsewhere. Another scheduler takes its place by keeping the `Scheduler` protocol.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from services.gateway.backlog import CostEstimate

_UNMEASURED_RETRY_S = 1.0

_HEADROOM = 1.25
"""How much longer than foreseen work may take before it misses its deadline. Under overload all
that is admitted stands at this edge: without headroom half of it would come too late."""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """What may wait at most. What runs is not counted."""

    rows: int = 64
    size_bytes: int = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class WorkItem:
    """One piece of work for an engine worker: its price and its deadline (monotonic)."""

    id: int
    source: str  # the branch or encoder it belongs to
    rows: int
    size_bytes: int
    arrived_ns: int
    deadline_ns: int


@dataclass(frozen=True, slots=True)
class Admitted:
    """All items offered together are in the queue."""


@dataclass(frozen=True, slots=True)
class Refused:
    """None of them is. `reason`: "queue-rows", "queue-bytes", "queue-wait" (they would come too
    late), "too-large" or "expired"."""

    reason: str
    retry_after_s: float


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Run `item` now; `expired` were dropped on the way to it."""

    item: WorkItem
    expired: tuple[WorkItem, ...] = ()


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing left to run; `expired` were dropped."""

    expired: tuple[WorkItem, ...] = ()


@dataclass(frozen=True, slots=True)
class Depth:
    """What waits and what runs."""

    rows: int
    size_bytes: int
    running: int


class Scheduler(Protocol):
    """Chooses the next work item. `now_ns` comes in, a decision goes out."""

    def offer(self, items: Sequence[WorkItem], now_ns: int) -> Admitted | Refused: ...
    def next(self, now_ns: int) -> Dispatch | Idle: ...
    def finished(self, item: WorkItem, now_ns: int) -> None: ...
    def cancel(self, item_id: int, now_ns: int) -> WorkItem | None: ...
    def backlog_s(self, now_ns: int) -> float: ...
    @property
    def depth(self) -> Depth: ...


class FifoScheduler:
    """First in, first out. The items of one request are admitted together or not at all."""

    def __init__(self, limits: QueueLimits, workers: int = 1) -> None:
        self._limits = limits
        self._workers = workers
        self._waiting: OrderedDict[int, WorkItem] = OrderedDict()
        self._rows = 0
        self._bytes = 0
        self._running: dict[int, tuple[WorkItem, int]] = {}
        self._cost = CostEstimate()

    @property
    def depth(self) -> Depth:
        return Depth(self._rows, self._bytes, len(self._running))

    def offer(self, items: Sequence[WorkItem], now_ns: int) -> Admitted | Refused:
        rows = sum(item.rows for item in items)
        size_bytes = sum(item.size_bytes for item in items)
        if rows > self._limits.rows or size_bytes > self._limits.size_bytes:
            return Refused("too-large", 0.0)
        if any(item.deadline_ns <= now_ns for item in items):
            return Refused("expired", 0.0)
        if self._rows + rows > self._limits.rows:
            return Refused("queue-rows", self.backlog_s(now_ns))
        if self._bytes + size_bytes > self._limits.size_bytes:
            return Refused("queue-bytes", self.backlog_s(now_ns))
        if (late_s := self._late_s(items, now_ns)) > 0:
            return Refused("queue-wait", late_s)
        for item in items:
            self._waiting[item.id] = item
        self._rows += rows
        self._bytes += size_bytes
        return Admitted()

    def next(self, now_ns: int) -> Dispatch | Idle:
        expired: list[WorkItem] = []
        while self._waiting:
            item = self._take(next(iter(self._waiting)))
            if item.deadline_ns > now_ns:
                self._running[item.id] = item, now_ns
                self._cost.learn_fate(item, ran=True)
                return Dispatch(item, tuple(expired))
            expired.append(item)
        return Idle(tuple(expired))

    def finished(self, item: WorkItem, now_ns: int) -> None:
        _, started_ns = self._running.pop(item.id)
        self._cost.learn_time(item, now_ns - started_ns)

    def cancel(self, item_id: int, now_ns: int) -> WorkItem | None:
        """Forget a waiting item, and tell which; one that runs or is gone is left alone."""
        if item_id not in self._waiting:
            return None
        item = self._take(item_id)
        if now_ns < item.deadline_ns:  # else it was not withdrawn: it came too late
            self._cost.learn_fate(item, ran=False)
        return item

    def backlog_s(self, now_ns: int) -> float:
        """How long what waits and runs now will take: a hint for Retry-After."""
        if not self._cost.measured:
            return _UNMEASURED_RETRY_S
        return self._backlog_ns(now_ns) / 1e9

    def _take(self, item_id: int) -> WorkItem:
        item = self._waiting.pop(item_id)
        self._rows -= item.rows
        self._bytes -= item.size_bytes
        return item

    def _backlog_ns(self, now_ns: int) -> float:
        waiting = sum(self._cost.expected_ns(item) for item in self._waiting.values())
        running = sum(
            max(0.0, self._cost.run_ns(item) - (now_ns - started_ns))
            for item, started_ns in self._running.values()
        )
        return (waiting + running) / self._workers

    def _late_s(self, items: Sequence[WorkItem], now_ns: int) -> float:
        """By how much the earliest of them would miss its deadline; 0 where one is in time.

        An idle worker always takes the next work: an estimate that a stall has spoiled is
        corrected by what runs then, and cannot keep the door shut.
        """
        if not self._waiting and len(self._running) < self._workers:
            return 0.0
        ahead_ns = self._backlog_ns(now_ns)
        late_ns = []
        for item in items:
            done_ns = ahead_ns + self._cost.run_ns(item)
            late_ns.append(done_ns * _HEADROOM - (item.deadline_ns - now_ns))
            ahead_ns += self._cost.expected_ns(item) / self._workers
        return max(0.0, min(late_ns, default=0.0) / 1e9)
