"""Workers run what the scheduler chooses; nobody waits for what nobody wants."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from infra.clocks import SystemClock
from services.gateway.executor import Checkpoint, EngineExecutor, Job
from services.gateway.scheduler import FifoScheduler, QueueLimits
from services.telemetry.metrics import GatewayMetrics
from tests.services.gateway.conftest import until
from validators.contracts.errors import DeadlineExceeded, Overloaded, TooLarge

MINUTE_NS = 60 * 10**9


@pytest.fixture
def executor() -> Iterator[EngineExecutor]:
    scheduler = FifoScheduler(QueueLimits(rows=2))
    running = EngineExecutor(scheduler, SystemClock(), GatewayMetrics())
    yield running
    running.close()


def job(run: Callable[[Checkpoint], Any], *, rows: int = 1, left_ns: int = MINUTE_NS) -> Job:
    now_ns = SystemClock().monotonic_ns()
    return Job("image", rows, 8, now_ns, now_ns + left_ns, run)


async def test_results_and_errors_come_back(executor: EngineExecutor) -> None:
    def fail(_: Checkpoint) -> None:
        raise ValueError("broken")

    good, bad = executor.submit([job(lambda _: 7), job(fail)])
    assert await good == 7
    with pytest.raises(ValueError, match="broken"):
        await bad


async def test_a_request_is_queued_whole_or_not_at_all(executor: EngineExecutor) -> None:
    ran: list[Any] = []
    gate = threading.Event()
    (first,) = executor.submit([job(lambda _: gate.wait(60))])
    executor.submit([job(ran.append)])
    with pytest.raises(Overloaded) as refused:
        executor.submit([job(ran.append), job(ran.append)])
    assert refused.value.retry_after_s is not None
    assert executor.queued == 1
    with pytest.raises(TooLarge):
        executor.submit([job(ran.append, rows=3)])
    gate.set()
    await first
    await until(lambda: len(ran) == 1)


async def test_work_whose_time_is_over_is_dropped_unrun(executor: EngineExecutor) -> None:
    ran: list[Any] = []
    gate = threading.Event()
    (first,) = executor.submit([job(lambda _: gate.wait(60))])
    (late,) = executor.submit([job(ran.append, left_ns=20_000_000)])
    await asyncio.sleep(0.05)
    gate.set()
    await first
    with pytest.raises(Overloaded) as refused:
        await late
    assert refused.value.retry_after_s is not None
    assert ran == []
    with pytest.raises(DeadlineExceeded):
        executor.submit([job(ran.append, left_ns=0)])


async def test_only_work_that_never_reached_a_worker_was_shed(executor: EngineExecutor) -> None:
    gate = threading.Event()
    (running,) = executor.submit([job(lambda _: gate.wait(60))])
    (waiting,) = executor.submit([job(lambda _: None)])
    assert executor.shed([running, waiting]) is None
    assert isinstance(executor.shed([waiting]), Overloaded)
    gate.set()
    await asyncio.gather(running, waiting)
    assert executor.shed([waiting]) is None


async def test_a_cancelled_job_stops_at_its_next_checkpoint(executor: EngineExecutor) -> None:
    entered, ended = threading.Event(), threading.Event()

    def step_by_step(checkpoint: Checkpoint) -> None:
        entered.set()
        try:
            while not ended.wait(0.005):
                checkpoint.require_time()
        except DeadlineExceeded:
            ended.set()
            raise

    (running,) = executor.submit([job(step_by_step)])
    await asyncio.to_thread(entered.wait, 60)
    running.cancel()
    assert await asyncio.to_thread(ended.wait, 60)


async def test_a_cancelled_job_that_waits_makes_room(executor: EngineExecutor) -> None:
    ran: list[Any] = []
    gate = threading.Event()
    (first,) = executor.submit([job(lambda _: gate.wait(60))])
    (second,) = executor.submit([job(ran.append, rows=2)])
    second.cancel()
    await until(lambda: executor.queued == 0)
    (third,) = executor.submit([job(ran.append, rows=2)])
    gate.set()
    await asyncio.gather(first, third)
    assert len(ran) == 1
