"""Padded work of planned profiles, beside powers of two and beside one maximal profile.

Plans come from the first half of a trace, in four windows, and are judged on the second half. The
powers of two are a ladder down from each dimension's maximum; how many rungs each dimension gets
(their product is k at most) is the best choice in hindsight, on the second half: better than anyone
could know. A second baseline lets the planner itself choose among powers of two. Every side has the
same k profiles at most, and its largest covers the contract's maximum.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from services.engines.profiles.ahead import plan_ahead
from services.engines.profiles.bounds import DimBound
from services.engines.profiles.histogram import ShapeHistogram, merge, tally
from services.engines.profiles.ladders import Corners, ladders
from services.engines.profiles.plan import ProfilePlan, padding_of, plan_profiles
from tests.benchmarks.result import Machine, Options, Result
from tests.benchmarks.shape_traces import Trace, read_trace

TRACES = ("search", "dialogue", "speech")
WINDOWS = 4
COUNTS = (4, 8, 16)
JUDGED = 8
"""The ratios are those of this many profiles; the rows have the others too."""


def run(options: Options) -> Result:
    machine = Machine.now()
    rows = []
    ratios: dict[str, list[float]] = {name: [] for name in _RATIOS}
    for trace in map(read_trace, TRACES):
        for k in COUNTS:
            sides = _sides(trace, k)
            rows += [_row(trace, k, side, plan, wall_s) for side, (plan, wall_s) in sides.items()]
            if k == JUDGED:
                for name, side in _RATIOS.items():
                    waste = sides[side][0].padded_work
                    ratios[name].append(sides["ours"][0].padded_work / waste)
    worst = {name: max(values) for name, values in ratios.items()}
    each = {f"{name}_{trace}": values[at]
            for name, values in ratios.items() for at, trace in enumerate(TRACES)}  # fmt: skip
    note = f"ratios: the worst of the traces at k={JUDGED}; nothing was tuned on the trace speech"
    exact = "nothing here is timed but the planning, and repeats would count the same requests"
    return Result("profiles", machine, tuple(rows), worst | each, (note, exact))


_RATIOS = {
    "padding_ours_over_powers_of_two": "powers of two",
    "padding_ours_over_one_profile": "one profile",
    "padding_ours_over_planned_powers_of_two": "planned powers of two",
}


def _sides(trace: Trace, k: int) -> Mapping[str, tuple[ProfilePlan, float | None]]:
    """Every choice of profiles, judged on the second half, and how long planning took."""
    dims = [bound.name for bound in trace.bounds]
    middle = len(trace.shapes) // 2
    step = middle // WINDOWS
    windows = [tally(dims, trace.shapes[at : at + step]) for at in range(0, middle, step)]
    past, future = merge(*windows), tally(dims, trace.shapes[middle:])
    rounded = [{name: _power_of_two(shape[name], bound) for name, bound in _named(trace)}
               for shape in trace.shapes[:middle]]  # fmt: skip

    def judged(corners: Corners) -> ProfilePlan:
        return padding_of(future, corners, bounds=trace.bounds, work=trace.work)

    def planned(plan: Callable[[], ProfilePlan]) -> tuple[ProfilePlan, float | None]:
        started = time.perf_counter()
        corners = [item.maximum for item in plan().profiles]
        return judged(corners), time.perf_counter() - started

    def best(histogram: ShapeHistogram) -> ProfilePlan:
        return plan_profiles(histogram, k, bounds=trace.bounds, work=trace.work)

    def ahead() -> ProfilePlan:
        return plan_ahead(windows, k, bounds=trace.bounds, work=trace.work).plan

    top = tuple(bound.maximum for bound in trace.bounds)
    doubled = min(map(judged, ladders(trace.bounds, k)), key=lambda plan: plan.padded_work)
    return {
        "one profile": (judged([top]), None),
        "powers of two": (doubled, None),
        "planned powers of two": planned(lambda: best(tally(dims, rounded))),
        "ours, exact sizes": planned(lambda: best(past)),
        "ours": planned(ahead),
        "ours, in hindsight": planned(lambda: best(future)),
    }


def _named(trace: Trace) -> Iterator[tuple[str, DimBound]]:
    return ((bound.name, bound) for bound in trace.bounds)


def _power_of_two(size: int, bound: DimBound) -> int:
    return min(bound.maximum, 1 << (size - 1).bit_length())


def _row(
    trace: Trace, k: int, side: str, plan: ProfilePlan, wall_s: float | None
) -> dict[str, Any]:
    return {
        "trace": trace.name,
        "k": k,
        "side": side,
        "profiles": len(plan.profiles),
        "requests": plan.requests,
        "padded_over_useful": round(plan.padding_share, 4),
        "planned_in_s": "" if wall_s is None else round(wall_s, 3),
        "largest_sizes": " ".join("x".join(map(str, item.maximum)) for item in plan.profiles),
    }
