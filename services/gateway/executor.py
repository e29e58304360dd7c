"""Engine workers: a bounded pool that runs what the scheduler chooses, off the event loop.

All decisions are the scheduler's, and it is only ever touched from the event loop: no locks.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from services.gateway.scheduler import Dispatch, Refused, Scheduler, WorkItem
from validators.contracts.errors import DeadlineExceeded, Overloaded, TooLarge
from validators.contracts.ports import Clock


class Checkpoint:
    """Asked between the steps of a job: may it go on? Set from the loop, read by the worker."""

    def __init__(self, clock: Clock, deadline_ns: int) -> None:
        self._clock = clock
        self._deadline_ns = deadline_ns
        self.cancelled = False
        self.started = False

    def require_time(self) -> None:
        """Raises DeadlineExceeded where nobody waits for the result any more."""
        if self.cancelled or self._clock.monotonic_ns() >= self._deadline_ns:
            raise expired_error()


@dataclass(frozen=True, slots=True)
class Job:
    """What to run for one work item, in a worker thread."""

    source: str
    rows: int
    size_bytes: int
    arrived_ns: int
    deadline_ns: int
    run: Callable[[Checkpoint], Any]


class QueueObserver(Protocol):
    """Told of the queue's depth after every change, and of what was refused or dropped."""

    def observe_queue(self, rows: int, size_bytes: int, running: int) -> None: ...
    def count_refused(self, reason: str) -> None: ...


class EngineExecutor:
    """Runs jobs in at most `workers` threads. Use from one event loop."""

    def __init__(
        self, scheduler: Scheduler, clock: Clock, observer: QueueObserver, workers: int = 1
    ) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._observer = observer
        self._workers = workers
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="engine")
        self._ids = itertools.count()
        self._jobs: dict[int, tuple[Job, Checkpoint, asyncio.Future[Any]]] = {}

    def submit(self, jobs: Sequence[Job]) -> list[asyncio.Future[Any]]:
        """Queue the jobs of one request, all or none; cancelling a future withdraws its job.

        Raises:
            Overloaded: no room in the queue, or no time behind what is in it; with the time after
                which there should be.
            DeadlineExceeded: the deadline has passed already.  TooLarge: it can never fit.
        """
        now_ns = self._clock.monotonic_ns()
        items = [self._price(job) for job in jobs]
        decision = self._scheduler.offer(items, now_ns)
        if isinstance(decision, Refused):
            self._observer.count_refused(decision.reason)
            raise _refusal(decision)
        loop = asyncio.get_running_loop()
        futures = [self._register(item, job, loop) for item, job in zip(items, jobs, strict=True)]
        self._pump(loop)
        return futures

    def shed(self, futures: Iterable[asyncio.Future[Any]]) -> Overloaded | None:
        """Why work that is too late by now never reached a worker; None where any of it did.

        That is the queue's fault, not the work's: trying again later can help.
        """
        waiting = {
            id(future) for _, checkpoint, future in self._jobs.values() if not checkpoint.started
        }
        if all(id(future) in waiting or _was_dropped(future) for future in futures):
            return self._expired_unrun()
        return None

    @property
    def queued(self) -> int:
        """Rows that wait for a worker."""
        return self._scheduler.depth.rows

    def close(self) -> None:
        """End the workers; a job that runs is finished first, what waits is dropped."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _price(self, job: Job) -> WorkItem:
        return WorkItem(
            next(self._ids), job.source, job.rows, job.size_bytes, job.arrived_ns, job.deadline_ns
        )

    def _register(
        self, item: WorkItem, job: Job, loop: asyncio.AbstractEventLoop
    ) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = loop.create_future()
        self._jobs[item.id] = (job, Checkpoint(self._clock, job.deadline_ns), future)
        future.add_done_callback(lambda done: self._withdraw(item.id) if done.cancelled() else None)
        return future

    def _withdraw(self, item_id: int) -> None:
        """Called when nobody waits any more. A running job stops at its next checkpoint."""
        entry = self._jobs.get(item_id)
        if entry is None:
            return
        entry[1].cancelled = True
        now_ns = self._clock.monotonic_ns()
        item = self._scheduler.cancel(item_id, now_ns)
        if item is not None:
            del self._jobs[item_id]
            if item.deadline_ns <= now_ns:
                self._observer.count_refused("expired")
        self._observe()

    def _pump(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._scheduler.depth.running < self._workers:
            decision = self._scheduler.next(self._clock.monotonic_ns())
            for item in decision.expired:
                self._drop(item)
            if not isinstance(decision, Dispatch):
                break
            self._start(decision.item, loop)
        self._observe()

    def _start(self, item: WorkItem, loop: asyncio.AbstractEventLoop) -> None:
        job, checkpoint, _ = self._jobs[item.id]
        checkpoint.started = True

        def work() -> None:
            result: Any = None
            failure: BaseException | None = None
            try:
                result = job.run(checkpoint)
            except BaseException as error:  # carried to whoever awaits the future
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop is gone: nobody waits
                loop.call_soon_threadsafe(self._settle, item, result, failure, loop)

        self._pool.submit(work)

    def _settle(
        self,
        item: WorkItem,
        result: Any,
        failure: BaseException | None,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._scheduler.finished(item, self._clock.monotonic_ns())
        _, _, future = self._jobs.pop(item.id)
        if not future.done():
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)
        self._pump(loop)

    def _observe(self) -> None:
        depth = self._scheduler.depth
        self._observer.observe_queue(depth.rows, depth.size_bytes, depth.running)

    def _drop(self, item: WorkItem) -> None:
        self._observer.count_refused("expired")
        _, _, future = self._jobs.pop(item.id)
        if not future.done():
            future.set_exception(self._expired_unrun())

    def _expired_unrun(self) -> Overloaded:
        return Overloaded(
            "the request's time was up before a worker was free",
            where="expired",
            remedy="Try again after the time in Retry-After.",
            retry_after_s=self._scheduler.backlog_s(self._clock.monotonic_ns()),
        )


def _was_dropped(future: asyncio.Future[Any]) -> bool:
    finished = future.done() and not future.cancelled()
    return finished and isinstance(future.exception(), Overloaded)


def expired_error() -> DeadlineExceeded:
    return DeadlineExceeded(
        "the request's deadline has passed",
        remedy="Allow more time in x-request-timeout-ms or the gRPC deadline, or send less.",
    )


def _refusal(refused: Refused) -> Overloaded | DeadlineExceeded | TooLarge:
    if refused.reason == "expired":
        return expired_error()
    if refused.reason == "too-large":
        return TooLarge(
            "the request alone is larger than the whole queue",
            remedy="Send fewer or smaller inputs.",
        )
    what = "the queue is full"
    if refused.reason == "queue-wait":
        what = "what waits already would leave this request too little time"
    return Overloaded(
        what,
        where=refused.reason,
        remedy="Try again after the time in Retry-After.",
        retry_after_s=refused.retry_after_s,
    )
