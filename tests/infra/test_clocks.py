from __future__ import annotations

import time

from infra.clocks import SystemClock
from validators.contracts.ports import Clock


def test_the_system_clock_is_a_clock_that_never_runs_backwards() -> None:
    clock: Clock = SystemClock()
    readings = [clock.monotonic_ns() for _ in range(100)]
    assert readings == sorted(readings)


def test_its_wall_time_is_the_time_since_the_epoch() -> None:
    before = time.time_ns()
    assert before <= SystemClock().wall_ns() <= time.time_ns()
