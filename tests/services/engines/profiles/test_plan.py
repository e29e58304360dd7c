from __future__ import annotations

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.engines.profiles import exact
from services.engines.profiles.bounds import DimBound
from services.engines.profiles.cost import MemoryModel, attention_work, linear_work
from services.engines.profiles.histogram import ShapeHistogram, tally
from services.engines.profiles.plan import ProfilePlan, padding_of, plan_profiles
from tests.services.engines.profiles.model import INPUTS
from tests.services.engines.profiles.optimum import (
    least_work,
    product_of,
    random_case,
    useful_work,
)
from validators.contracts.digest import canonical_json
from validators.contracts.documents import load
from validators.contracts.errors import BadInput, TooLarge

LINE = st.lists(st.integers(1, 60), min_size=1, max_size=40)
PLANE = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 60)), min_size=1, max_size=25)


def line(sizes: list[int]) -> ShapeHistogram:
    return tally(("tokens",), ({"tokens": size} for size in sizes))


def plane(shapes: list[tuple[int, int]]) -> ShapeHistogram:
    return tally(("batch", "tokens"), ({"batch": a, "tokens": b} for a, b in shapes))


def bounded(histogram: ShapeHistogram, top: tuple[int, ...]) -> list[DimBound]:
    return [DimBound(name, 1, size) for name, size in zip(histogram.dims, top, strict=True)]


def total(plan: ProfilePlan) -> float:
    return plan.useful_work + plan.padded_work


@given(LINE, st.integers(1, 5), st.integers(60, 70))
@settings(deadline=None)
def test_over_one_dimension_it_is_the_optimum(sizes: list[int], k: int, top: int) -> None:
    histogram = line(sizes)
    plan = plan_profiles(histogram, k, bounds=bounded(histogram, (top,)))
    assert plan.proven
    assert len(plan.profiles) <= k
    assert total(plan) == pytest.approx(_least_by_quadratic(histogram, k, top), rel=1e-12)


def _least_by_quadratic(histogram: ShapeHistogram, k: int, top: int) -> float:
    """The plain recurrence over all cuts, written from its definition."""
    counts = {item.sizes[0]: item.count for item in histogram.counts}
    sizes = sorted({*counts, top})

    def group(first: int, last: int) -> float:
        return sizes[last] * sum(counts.get(size, 0) for size in sizes[first : last + 1])

    best = [group(0, last) for last in range(len(sizes))]
    for _ in range(1, k):
        best = [
            min([best[last], *(best[cut] + group(cut + 1, last) for cut in range(last))])
            for last in range(len(sizes))
        ]
    return best[-1]


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=12),
    st.integers(1, 4),
    st.floats(1.0, 3.0),
)
@settings(deadline=None)
def test_over_one_dimension_it_is_the_optimum_within_the_memory(
    sizes: list[int], k: int, room: float
) -> None:
    histogram = line(sizes)
    budget = math.floor(41 * room)
    plan = plan_profiles(
        histogram, k, bounds=bounded(histogram, (41,)),
        memory=MemoryModel(linear_work(("tokens",)), 1.0), max_bytes=budget,
    )  # fmt: skip
    best = least_work(histogram, k, (41,), memory=product_of, max_bytes=budget)
    assert plan.proven
    assert plan.memory_bytes <= budget
    assert total(plan) == pytest.approx(best, rel=1e-12)


def test_brute_force_and_the_plain_recurrence_agree() -> None:
    for seed in range(20):
        histogram, top = random_case(seed, 1)
        for k in (1, 2, 3, 4):
            assert least_work(histogram, k, top) == _least_by_quadratic(histogram, k, top[0])


def test_a_program_that_grows_too_large_gives_up_its_proof_but_not_its_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exact, "MAX_LABELS", 50)
    histogram = line(list(range(1, 60)))
    memory = MemoryModel(linear_work(("tokens",)), 1.0)
    costs = []
    for k in range(1, 8):
        plan = plan_profiles(
            histogram, k, bounds=bounded(histogram, (60,)), memory=memory, max_bytes=100
        )
        assert plan.memory_bytes <= 100
        costs.append(total(plan))
    assert not plan.proven
    assert all(after <= before for before, after in pairwise(costs))


@given(PLANE, st.integers(2, 7), st.sampled_from([None, 700, 900]))
@settings(deadline=None)
def test_more_profiles_never_cost_more(
    shapes: list[tuple[int, int]], k: int, max_bytes: int | None
) -> None:
    histogram = plane(shapes)
    costs = [
        total(
            plan_profiles(
                histogram, count, bounds=bounded(histogram, (10, 64)),
                memory=MemoryModel(linear_work(("batch", "tokens")), 1.0), max_bytes=max_bytes,
            )
        )
        for count in range(1, k + 1)
    ]  # fmt: skip
    assert all(after <= before for before, after in pairwise(costs))


@given(PLANE, st.integers(1, 5))
@settings(deadline=None)
def test_every_shape_within_the_bounds_is_covered(shapes: list[tuple[int, int]], k: int) -> None:
    plan = plan_profiles(
        plane(shapes), k, bounds=[DimBound("batch", 1, 8), DimBound("tokens", 2, 50)]
    )
    profiles = plan.shape_profiles(INPUTS)
    for shape in [*shapes, (1, 2), (8, 50)]:
        if shape[0] <= 8 and 2 <= shape[1] <= 50:
            assert any(item.covers({"ids": shape, "mask": shape}) for item in profiles)
    assert plan.profiles[-1].maximum == (8, 50)
    assert plan.requests + plan.outside == len(shapes)
    assert plan.outside == sum(a > 8 or b > 50 for a, b in shapes)
    assert sum(item.requests for item in plan.profiles) == plan.requests


@given(PLANE, st.integers(1, 5))
@settings(deadline=None)
def test_what_a_plan_expects_is_what_its_profiles_cost(
    shapes: list[tuple[int, int]], k: int
) -> None:
    histogram = plane(shapes)
    bounds = bounded(histogram, (9, 60))
    work = attention_work("batch", "tokens", width=8)
    plan = plan_profiles(histogram, k, bounds=bounds, work=work)
    again = padding_of(histogram, [p.maximum for p in plan.profiles], bounds=bounds, work=work)
    assert again.profiles == tuple(plan.profiles)
    assert plan.padded_work == pytest.approx(sum(p.padded_work for p in plan.profiles))
    assert plan.useful_work == pytest.approx(
        useful_work(histogram, lambda s: work.at({"batch": s[0], "tokens": s[1]}))
    )


RATIOS = [(2, 4, False), (2, 5, False), (2, 4, True), (3, 4, False), (3, 4, True)]


@pytest.mark.parametrize(("dims", "k", "within_memory"), RATIOS)
def test_over_several_dimensions_it_is_near_the_optimum(
    dims: int, k: int, within_memory: bool
) -> None:
    ratios = []
    for seed in range(1000, 1030):
        histogram, top = random_case(seed, dims)
        budget = int(product_of(top) * 1.6) if within_memory else None
        plan = plan_profiles(
            histogram, k, bounds=bounded(histogram, top),
            memory=MemoryModel(linear_work(histogram.dims), 1.0), max_bytes=budget,
        )  # fmt: skip
        best = least_work(histogram, k, top, memory=product_of, max_bytes=budget or math.inf)
        assert budget is None or plan.memory_bytes <= budget
        ratios.append(total(plan) / best)
    assert min(ratios) >= 1 - 1e-12
    assert max(ratios) <= 1.15
    assert np.mean(ratios) <= 1.01


def test_more_corners_than_can_be_tried_are_thinned_and_still_more_profiles_cost_less() -> None:
    draw = random.Random(4)
    histogram = plane([(draw.randint(1, 90), draw.randint(1, 90)) for _ in range(1800)])
    bounds = bounded(histogram, (90, 90))
    costs = [plan_profiles(histogram, k, bounds=bounds).padded_work for k in range(1, 6)]
    assert all(after < before for before, after in pairwise(costs))
    grid = [(45, 45), (45, 90), (90, 45), (90, 90)]
    assert costs[3] < padding_of(histogram, grid, bounds=bounds).padded_work


def test_the_optimum_is_the_shape_that_most_work_is_for() -> None:
    histogram = tally(
        ("batch", "tokens"),
        [{"batch": 1, "tokens": 8}] * 5 + [{"batch": 2, "tokens": 30}] * 3,
    )
    (only,) = plan_profiles(histogram, 1, bounds=bounded(histogram, (4, 64))).profiles
    assert (only.minimum, only.optimum, only.maximum) == ((1, 1), (2, 30), (4, 64))
    assert only.requests == 8


def test_nothing_recorded_plans_the_one_profile_that_the_bounds_need() -> None:
    plan = plan_profiles(line([]), 4, bounds=[DimBound("tokens", 3, 9)])
    assert [(item.optimum, item.maximum) for item in plan.profiles] == [((9,), (9,))]
    assert plan.padding_share == 0
    assert plan.requests == 0


def test_rounding_a_size_beyond_the_maximum_does_not_lose_it() -> None:
    draw = random.Random(5)
    histogram = tally(
        ("batch", "tokens"),
        [{"batch": draw.randint(1, 33), "tokens": draw.randint(1, 900)} for _ in range(9000)],
    )
    assert histogram.level > 0
    plan = plan_profiles(
        histogram, 3, bounds=[DimBound("batch", 1, 33), DimBound("tokens", 1, 900)]
    )
    assert plan.outside == 0
    assert plan.profiles[-1].maximum == (33, 900)


def test_the_order_of_the_bounds_changes_nothing_and_the_plan_is_a_document() -> None:
    histogram = plane([(1, 9), (8, 60), (3, 20), (2, 14)])
    bounds = bounded(histogram, (9, 60))
    plan = plan_profiles(histogram, 3, bounds=bounds)
    assert plan_profiles(histogram, 3, bounds=bounds[::-1]) == plan
    assert load(ProfilePlan, canonical_json(plan)) == plan


@pytest.mark.parametrize("k", [0, 33])
def test_a_number_of_profiles_out_of_range_is_refused(k: int) -> None:
    with pytest.raises(BadInput):
        plan_profiles(line([1]), k, bounds=[DimBound("tokens", 1, 9)])


def test_what_cannot_be_planned_is_refused_with_a_remedy() -> None:
    bounds = [DimBound("tokens", 1, 9)]
    memory = MemoryModel(linear_work(("tokens",)), 4.0)
    with pytest.raises(BadInput, match="other dimensions"):
        plan_profiles(line([1]), 2, bounds=[DimBound("batch", 1, 9)])
    with pytest.raises(BadInput, match="model of what a profile holds"):
        plan_profiles(line([1]), 2, bounds=bounds, max_bytes=9)
    with pytest.raises(TooLarge, match="takes 36 bytes, over 35"):
        plan_profiles(line([1]), 2, bounds=bounds, memory=memory, max_bytes=35)
    with pytest.raises(BadInput, match="no profile covers"):
        padding_of(line([1]), [(8,)], bounds=bounds)
