"""Runs pairs of encoder versions, each in a child process of its own, and measures them.

A child is told which modules to load and what to feed them; what it answers holds no name. A child
that dies gives a measurement that says so, and the other pairs are run all the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from services.children.errors import BuildCancelled, ChildCrashed, ChildTimedOut, ChildTooLarge
from services.children.process import Cancel, Limits, run_child
from services.children.scratch import scratch
from services.compatibility.pair_request import RUN_PAIR, Part, RunAnswer, RunFigures, RunRequest
from services.engines.tensors import Arrays, save_cases
from validators.compatibility.paired import PairMeasurement, PairRun
from validators.contracts.engine import Precision

PRECISIONS = (Precision.FP16, Precision.BF16, Precision.FP32)
"""What torch really computes in on a CPU."""

LIMITS = Limits(timeout_s=3600.0, memory_bytes=3 * 1024**3)

Advanced = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class PairPlan:
    """Versions of two encoders, oldest first, and what joins one of each."""

    rows: tuple[Part, ...]
    columns: tuple[Part, ...]
    join: str
    base: Path


@dataclass(frozen=True, slots=True)
class _Ran:
    figures: Mapping[Precision, RunFigures]
    crashed: str
    duration_ms: float
    peak_bytes: int


def measure_pairs(
    plan: PairPlan,
    cases: Sequence[Arrays],
    workdir: Path,
    *,
    precisions: Sequence[Precision] = PRECISIONS,
    limits: Limits = LIMITS,
    advanced: Advanced = lambda done, total, what: None,
    cancel: Cancel | None = None,
) -> dict[tuple[int, int], PairMeasurement]:
    """Every row with every column over the same cases, and each version alone.

    Raises:
        BadInput: a factory that is not there, a case without an input.
        BuildCancelled: `cancel` said so.
    """
    total = len(plan.rows) + len(plan.columns) + len(plan.rows) * len(plan.columns)
    with scratch(workdir) as folder:
        feeds = folder / "cases.npz"
        save_cases(feeds, cases)
        done = 0

        def run(what: str, join: str | None, *parts: Part) -> _Ran:
            nonlocal done
            advanced(done, total, what)
            own = folder / str(done)
            own.mkdir()
            request = RunRequest(parts, join, str(plan.base), str(feeds), tuple(precisions))
            found = _run(request, own, what, limits, cancel)
            done += 1
            return found

        first = [run(f"row {at}", None, part) for at, part in enumerate(plan.rows)]
        second = [run(f"column {at}", None, part) for at, part in enumerate(plan.columns)]
        found = {}
        for row, reads in enumerate(plan.rows):
            for column, says in enumerate(plan.columns):
                alone = first[row], second[column]
                crashed = next((item for item in alone if item.crashed), None)
                pair = crashed or run(f"pair {row}, {column}", plan.join, reads, says)
                found[row, column] = _measurement(f"r{row}", f"c{column}", pair, alone)
        return found


def _run(
    request: RunRequest, folder: Path, what: str, limits: Limits, cancel: Cancel | None
) -> _Ran:
    started = time.perf_counter()
    try:
        result = run_child(RUN_PAIR, request, folder, subject=what, limits=limits, cancel=cancel)
    except BuildCancelled:
        raise
    except (ChildCrashed, ChildTimedOut, ChildTooLarge) as error:
        return _Ran({}, error.what, (time.perf_counter() - started) * 1e3, 0)
    figures = {item.precision: item for item in result.answer(RunAnswer).figures}
    return _Ran(figures, "", (time.perf_counter() - started) * 1e3, result.peak_bytes)


def _measurement(row: str, column: str, pair: _Ran, alone: tuple[_Ran, _Ran]) -> PairMeasurement:
    runs = tuple(
        _pair_run(figures, *(item.figures[precision].broken for item in alone))
        for precision, figures in pair.figures.items()
    )
    return PairMeasurement(
        row, column, runs, None, pair.crashed, round(pair.duration_ms, 1), pair.peak_bytes
    )


def _pair_run(pair: RunFigures, broken_first: int, broken_second: int) -> PairRun:
    return PairRun(
        pair.precision, pair.computed, pair.computed_in, pair.requests, pair.broken,
        broken_first, broken_second, pair.peak, pair.headroom, pair.flushed_share,
        pair.cosine_min, pair.first_broken,
    )  # fmt: skip
