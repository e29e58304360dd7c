"""Task: time a built engine, loaded as a server would load it, in a process of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from services.children.phases import Phases
from services.engines.load import open_engine
from services.engines.precision.measure_request import CaseTiming, Measured, MeasureRequest
from services.engines.tensors import Arrays, load_cases, save_cases

REQUEST = MeasureRequest

Call = Callable[[], Arrays]


def run(request: MeasureRequest, phases: Phases) -> Measured:
    cases = load_cases(Path(request.feeds))
    timed, answered = cases[: request.timed], cases[request.timed :]
    before = _memory("VmRSS")
    with phases.phase("load"):
        started = time.perf_counter()
        data = Path(request.engine).read_bytes()
        engine = open_engine(request.manifest, data, threads=request.threads)
        load_ms = _since(started)
    del data
    first = _stopwatch(lambda: engine.run(timed[0]))
    cold_ms, resident = _age_ms(), _memory("VmRSS") - before
    answer_bytes = sum(array.nbytes for array in engine.run(timed[0]).values())
    with phases.phase("time"):
        timings = []
        for index, feeds in enumerate(timed):
            call = _calling(engine.run, feeds)
            timings.append(_time(call, request, first if index == 0 else _stopwatch(call)))
    peak = _memory("VmHWM")
    if answered:
        with phases.phase("answer"):
            save_cases(Path(request.out), [engine.run(feeds) for feeds in answered])
    engine.close()
    return Measured(load_ms, cold_ms, resident, peak, answer_bytes, tuple(timings))


def _calling(run_engine: Callable[[Arrays], Arrays], feeds: Arrays) -> Call:
    return lambda: run_engine(feeds)


def _time(call: Call, request: MeasureRequest, first_ms: float) -> CaseTiming:
    for _ in range(request.warm_up):
        call()
    calls: list[float] = []
    began, cpu = time.perf_counter(), time.process_time()
    while len(calls) < request.most_calls and (
        len(calls) < request.least_calls or _since(began) < request.budget_ms
    ):
        calls.append(_stopwatch(call))
    cpu_ms = 1e3 * (time.process_time() - cpu) / len(calls)
    return CaseTiming(first_ms, tuple(calls), cpu_ms)


def _stopwatch(call: Call) -> float:
    started = time.perf_counter()
    call()
    return _since(started)


def _since(started: float) -> float:
    return 1e3 * (time.perf_counter() - started)


def _memory(field: str) -> int:
    """Bytes of this process: VmRSS now, VmHWM at its largest (proc(5))."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == field:
            return int(rest.split()[0]) * 1024
    return 0


def _age_ms() -> float:
    """How long this process has lived: its start is field 22 of /proc/self/stat, in ticks."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    started_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return 1e3 * (time.clock_gettime(time.CLOCK_BOOTTIME) - started_s)
