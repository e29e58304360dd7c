"""Which work item runs next, and whether there is room for another. No clock, no thread.

`FifoScheduler` is first-in-first-out within bounds of rows and bytes; expired work is never
dispatched. Another scheduler takes its place by keeping the `Scheduler` protocol.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

_UNMEASURED_RETRY_S = 1.0
_SMOOTHING = 0.2
_OLD_WEIGHT = 1.0 - _SMOOTHING


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
    """None of them is. `reason`: "queue-rows", "queue-bytes", "too-large" or "expired"."""

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
    def cancel(self, item_id: int) -> None: ...
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
        self._started_ns: dict[int, int] = {}
        self._row_ns: float | None = None

    @property
    def depth(self) -> Depth:
        return Depth(self._rows, self._bytes, len(self._started_ns))

    def offer(self, items: Sequence[WorkItem], now_ns: int) -> Admitted | Refused:
        rows = sum(item.rows for item in items)
        size_bytes = sum(item.size_bytes for item in items)
        if rows > self._limits.rows or size_bytes > self._limits.size_bytes:
            return Refused("too-large", 0.0)
        if any(item.deadline_ns <= now_ns for item in items):
            return Refused("expired", 0.0)
        if self._rows + rows > self._limits.rows:
            return Refused("queue-rows", self._backlog_s())
        if self._bytes + size_bytes > self._limits.size_bytes:
            return Refused("queue-bytes", self._backlog_s())
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
                self._started_ns[item.id] = now_ns
                return Dispatch(item, tuple(expired))
            expired.append(item)
        return Idle(tuple(expired))

    def finished(self, item: WorkItem, now_ns: int) -> None:
        row_ns = (now_ns - self._started_ns.pop(item.id)) / max(1, item.rows)
        known = self._row_ns
        self._row_ns = row_ns if known is None else _OLD_WEIGHT * known + _SMOOTHING * row_ns

    def cancel(self, item_id: int) -> None:
        """Forget a waiting item; one that runs or is gone is left alone."""
        if item_id in self._waiting:
            self._take(item_id)

    def _take(self, item_id: int) -> WorkItem:
        item = self._waiting.pop(item_id)
        self._rows -= item.rows
        self._bytes -= item.size_bytes
        return item

    def _backlog_s(self) -> float:
        """How long what waits now will take; a hint for Retry-After, never a reason to refuse."""
        if self._row_ns is None:
            return _UNMEASURED_RETRY_S
        return self._rows * self._row_ns / self._workers / 1e9
