"""Plan for requests still to come: with as much headroom as would have helped last time.

The best plan for what was recorded puts corners at sizes that were seen, and a request one token
longer falls to a much larger profile. Planning from sizes rounded up leaves headroom, and too much
of it is padding again. How much is right depends on the traffic, so it is measured: plans from all
windows but the last, with several roundings, are judged on the last window (validation forward in
time, as forecasts are judged), and the best rounding is used on everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.engines.profiles.bounds import DimBound
from services.engines.profiles.cost import MemoryModel, ShapeFormula
from services.engines.profiles.histogram import ShapeHistogram, coarsened, merge
from services.engines.profiles.plan import ProfilePlan, padding_of, plan_profiles
from validators.contracts.errors import BadInput

LEVELS = (0, 16, 17, 18, 19)
"""Exact sizes, and sizes rounded up to 4, 3, 2 significant bits, and to powers of two."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A rounding, and padded over useful work of its plan on the window it had not seen."""

    level: int
    padding_share: float


@dataclass(frozen=True, slots=True)
class AheadPlan:
    """The plan, over everything recorded; the rounding it was made with, and what was tried.

    `plan.proven` is False wherever sizes were rounded: it is the best with that headroom.
    """

    plan: ProfilePlan
    level: int
    trials: tuple[Trial, ...]


def plan_ahead(
    windows: Sequence[ShapeHistogram],
    k: int,
    *,
    bounds: Sequence[DimBound],
    work: ShapeFormula | None = None,
    memory: MemoryModel | None = None,
    max_bytes: int | None = None,
) -> AheadPlan:
    """At most `k` profiles from histograms of successive windows of time, the oldest first.

    One window alone gives nothing to judge by: its exact sizes are planned for.

    Raises:
        BadInput, TooLarge: as `plan_profiles`; BadInput where there is no window.
    """
    if not windows:
        raise BadInput("there is no recorded window", remedy="Record shapes first.")

    def planned(histogram: ShapeHistogram, level: int) -> ProfilePlan:
        return plan_profiles(
            coarsened(histogram, level), k,
            bounds=bounds, work=work, memory=memory, max_bytes=max_bytes,
        )  # fmt: skip

    def judged(plan: ProfilePlan, histogram: ShapeHistogram) -> ProfilePlan:
        corners = [item.maximum for item in plan.profiles]
        return padding_of(histogram, corners, bounds=bounds, work=work, memory=memory)

    everything = merge(*windows)
    trials: tuple[Trial, ...] = ()
    if len(windows) > 1 and windows[-1].total and any(item.total for item in windows[:-1]):
        past = merge(*windows[:-1])
        trials = tuple(
            Trial(level, judged(planned(past, level), windows[-1]).padding_share)
            for level in LEVELS
        )
    level = min(trials, key=lambda trial: trial.padding_share).level if trials else 0
    plan = planned(everything, level)
    return AheadPlan(plan if level == 0 else judged(plan, everything), level, trials)
