from __future__ import annotations

import random

import pytest

from services.engines.profiles.ahead import LEVELS, plan_ahead
from services.engines.profiles.bounds import DimBound
from services.engines.profiles.cost import MemoryModel, linear_work
from services.engines.profiles.histogram import ShapeHistogram, coarsened, tally
from services.engines.profiles.plan import padding_of, plan_profiles
from validators.contracts.errors import BadInput

BOUNDS = [DimBound("batch", 1, 8), DimBound("tokens", 1, 512)]
DIMS = ("batch", "tokens")


def window(seed: int, longest: int, count: int = 60) -> ShapeHistogram:
    draw = random.Random(seed)
    return tally(
        DIMS,
        [{"batch": draw.randint(1, 4), "tokens": draw.randint(1, longest)} for _ in range(count)],
    )


def test_headroom_is_taken_where_the_next_window_needed_it() -> None:
    windows = [window(seed, longest=100 + 9 * seed) for seed in range(4)]
    ahead = plan_ahead(windows[:3], 4, bounds=BOUNDS)
    assert [trial.level for trial in ahead.trials] == list(LEVELS)
    assert ahead.level == min(ahead.trials, key=lambda trial: trial.padding_share).level
    assert ahead.level > 0
    exact = plan_profiles(window(0, 100), 4, bounds=BOUNDS)
    corners = [[item.maximum for item in plan.profiles] for plan in (ahead.plan, exact)]
    new, old = (padding_of(windows[3], chosen, bounds=BOUNDS).padded_work for chosen in corners)
    assert new < old


def test_traffic_that_repeats_itself_needs_no_headroom() -> None:
    fixed = tally(DIMS, [{"batch": 3, "tokens": 77}] * 9 + [{"batch": 1, "tokens": 9}] * 9)
    ahead = plan_ahead([fixed, fixed, fixed], 3, bounds=BOUNDS)
    assert ahead.level == 0
    assert ahead.plan.padded_work == 0
    assert [item.maximum for item in ahead.plan.profiles] == [(1, 9), (3, 77), (8, 512)]


@pytest.mark.parametrize(
    "windows", [[window(1, 90)], [tally(DIMS, []), window(1, 90)], [window(1, 90), tally(DIMS, [])]]
)
def test_without_two_windows_exact_sizes_are_planned_for(windows: list[ShapeHistogram]) -> None:
    ahead = plan_ahead(windows, 3, bounds=BOUNDS)
    assert (ahead.level, ahead.trials) == (0, ())
    assert ahead.plan == plan_profiles(window(1, 90), 3, bounds=BOUNDS)


def test_the_plan_counts_true_sizes_and_keeps_to_its_memory() -> None:
    windows = [window(seed, longest=100 + 9 * seed) for seed in range(3)]
    memory = MemoryModel(linear_work(DIMS), 2.0)
    ahead = plan_ahead(windows, 4, bounds=BOUNDS, memory=memory, max_bytes=9500)
    assert ahead.plan.requests == sum(item.total for item in windows)
    assert ahead.plan.useful_work == sum(
        item.count * item.sizes[0] * item.sizes[1] for part in windows for item in part.counts
    )
    assert 8192 < ahead.plan.memory_bytes <= 9500
    assert ahead.plan.profiles[-1].maximum == (8, 512)


def test_nothing_recorded_at_all_is_refused() -> None:
    with pytest.raises(BadInput):
        plan_ahead([], 3, bounds=BOUNDS)
    with pytest.raises(BadInput):
        coarsened(window(1, 9), 22)
