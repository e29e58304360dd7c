from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.engines.guard import check_feeds
from services.engines.profiles.assign import (
    Cut,
    Degrade,
    Outside,
    OutsidePolicy,
    Serve,
    ServedProfile,
    Split,
    assign,
    served_profiles,
)
from services.engines.profiles.bounds import DimBound
from services.engines.profiles.cost import ShapeFormula, Term, linear_work
from services.engines.profiles.histogram import tally
from services.engines.profiles.plan import plan_profiles
from tests.services.engines.profiles.model import INPUTS

WORK = linear_work(("batch", "tokens"))


def profile(
    index: int, batch: int, tokens: int, minimum: tuple[int, int] = (1, 1)
) -> ServedProfile:
    return ServedProfile(
        index,
        {"batch": minimum[0], "tokens": minimum[1]},
        {"batch": batch, "tokens": tokens},
    )


PROFILES = [profile(0, 1, 64), profile(1, 8, 16), profile(2, 8, 64)]


@pytest.mark.parametrize(
    ("batch", "tokens", "index", "padding"),
    [(1, 64, 0, 0), (1, 20, 0, 44), (1, 10, 0, 54), (2, 16, 1, 96), (2, 17, 2, 478)],
)
def test_the_profile_with_least_padding_serves(
    batch: int, tokens: int, index: int, padding: float
) -> None:
    decision = assign({"batch": batch, "tokens": tokens, "other": 9}, PROFILES, WORK)
    assert isinstance(decision, Serve)
    assert (decision.profile, decision.padded_work, decision.covered) == (index, padding, True)
    assert dict(decision.sizes) == PROFILES[index].maximum


PAD, SPLIT = Outside.PAD, Outside.SPLIT


@pytest.mark.parametrize(
    ("allowed", "expected"), [((PAD,), Serve), ((SPLIT,), Degrade), ((), Degrade)]
)
def test_a_shape_below_every_minimum_is_raised_only_where_padding_is_allowed(
    allowed: tuple[Outside, ...], expected: type
) -> None:
    decision = assign(
        {"batch": 1, "tokens": 2}, [profile(0, 4, 8, (2, 4))], WORK, OutsidePolicy(allowed)
    )
    assert isinstance(decision, expected)
    if isinstance(decision, Serve):
        assert not decision.covered
    if isinstance(decision, Degrade):
        assert dict(decision.fits) == {"batch": 2, "tokens": 4}


@pytest.mark.parametrize(
    ("batch", "tokens", "parts"),
    [
        (9, 60, [(2, 8), (0, 1)]),  # a full batch, and the row that is left at its own profile
        (10, 60, [(2, 8), (0, 1), (0, 1)]),
        (16, 16, [(1, 8), (1, 8)]),
        (12, 10, [(1, 8), (1, 4)]),
    ],
)
def test_a_batch_over_every_profile_is_split_at_the_least_work(
    batch: int, tokens: int, parts: list[tuple[int, int]]
) -> None:
    decision = assign({"batch": batch, "tokens": tokens}, PROFILES, WORK)
    assert isinstance(decision, Split)
    assert [(part.serve.profile, part.rows) for part in decision.parts] == parts


@pytest.mark.parametrize(
    ("batch", "allowed", "rows"),
    [
        (5, (SPLIT,), [3, 2]),  # not 4 and 1: a part of one row is below the minimum
        (5, (PAD, SPLIT), [3, 2]),
        (9, (SPLIT,), [4, 3, 2]),
    ],
)
def test_parts_keep_to_the_minimum(
    batch: int, allowed: tuple[Outside, ...], rows: list[int]
) -> None:
    profiles = [profile(0, 4, 8, (2, 1))]
    decision = assign({"batch": batch, "tokens": 8}, profiles, WORK, OutsidePolicy(allowed))
    assert isinstance(decision, Split)
    assert [part.rows for part in decision.parts] == rows
    assert all(part.serve.covered for part in decision.parts)


def test_parts_below_the_minimum_are_raised_only_where_padding_is_allowed() -> None:
    profiles = [profile(0, 4, 8, (3, 1))]
    five = {"batch": 5, "tokens": 8}
    assert isinstance(assign(five, profiles, WORK, OutsidePolicy((SPLIT,))), Degrade)
    decision = assign(five, profiles, WORK)
    assert isinstance(decision, Split)
    assert [(part.rows, part.serve.covered) for part in decision.parts] == [(4, True), (1, False)]


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 9)), min_size=1, max_size=3, unique=True),
    st.integers(1, 14),
    st.integers(1, 9),
    st.integers(1, 4),
)
@settings(deadline=None)
def test_a_split_is_the_cheapest_of_all_splits(
    shapes: list[tuple[int, int]], batch: int, tokens: int, most: int
) -> None:
    work = ShapeFormula((*WORK.terms, Term(3.0, ())))  # a fixed cost of every call
    profiles = [profile(index, *shape) for index, shape in enumerate(shapes)]
    decision = assign(
        {"batch": batch, "tokens": tokens}, profiles, work, OutsidePolicy(max_parts=most)
    )
    able = [item for item in profiles if item.maximum["tokens"] >= tokens]
    prices = [
        sum(work.at(item.maximum) for item in chosen)
        for count in range(1, most + 1)
        for chosen in itertools.combinations_with_replacement(able, count)
        if sum(item.maximum["batch"] for item in chosen) >= batch
    ]
    if isinstance(decision, Split):
        paid = sum(work.at(profiles[part.serve.profile].maximum) for part in decision.parts)
        assert paid == pytest.approx(min(prices))
        assert sum(part.rows for part in decision.parts) == batch
        assert len(decision.parts) <= most
    if isinstance(decision, Degrade):
        assert not prices


@pytest.mark.parametrize(
    ("sizes", "policy", "reason", "fits"),
    [
        ({"batch": 2, "tokens": 65}, OutsidePolicy(), "tokens 65 is over 64", (2, 64)),
        ({"batch": 99, "tokens": 4}, OutsidePolicy(), "batch 99 is over 64", (64, 4)),
        ({"batch": 99, "tokens": 65}, OutsidePolicy(max_parts=2), "batch 99 is over 16", (16, 64)),
        ({"batch": 99, "tokens": 4}, OutsidePolicy((SPLIT,)), "batch 99 is over 64", (64, 4)),
        ({"batch": 9, "tokens": 4}, OutsidePolicy((PAD,)), "policy allows pad", (8, 4)),
        ({"batch": 9, "tokens": 4}, OutsidePolicy(batch_dim="rows"), "batch 9 is over 8", (8, 4)),
        ({"batch": 0, "tokens": 4}, OutsidePolicy(), "no valid size of batch", (8, 64)),
        ({"tokens": 4}, OutsidePolicy(), "no valid size of batch", (8, 64)),
        ({"batch": 2000, "tokens": 4}, OutsidePolicy(max_parts=999), "is over 512", (512, 4)),
        ({"batch": 1, "tokens": 1 << 40}, OutsidePolicy(), "no valid size of tokens", (8, 64)),
    ],
)
def test_what_cannot_be_served_is_refused_with_the_reason_and_what_would_fit(
    sizes: Mapping[str, int], policy: OutsidePolicy, reason: str, fits: tuple[int, int]
) -> None:
    decision = assign(sizes, PROFILES, WORK, policy)
    assert isinstance(decision, Degrade)
    assert reason in decision.reason
    assert tuple(size for _, size in decision.fits) == fits
    assert decision.remedy


def test_two_profiles_that_only_together_cover_a_shape_do_not_serve_it() -> None:
    decision = assign({"batch": 2, "tokens": 32}, [profile(0, 1, 16), profile(1, 4, 8)], WORK)
    assert isinstance(decision, Degrade)
    assert "is over 16" in decision.reason
    between = assign({"batch": 2, "tokens": 12}, [profile(0, 1, 16), profile(1, 4, 8)], WORK)
    assert isinstance(between, Split)
    assert [part.rows for part in between.parts] == [1, 1]


def test_without_profiles_it_still_answers() -> None:
    assert isinstance(assign({"batch": 1}, [], WORK), Degrade)


@given(
    st.dictionaries(st.sampled_from(["batch", "tokens", "x"]), st.integers(-5, 1 << 62)),
    st.lists(st.sampled_from(Outside), unique=True),
)
@settings(deadline=None)
def test_it_answers_whatever_is_asked(sizes: dict[str, int], allowed: list[Outside]) -> None:
    policy = OutsidePolicy(tuple(allowed), cuttable=frozenset({"tokens", "batch"}))
    decision = assign(sizes, PROFILES, WORK, policy)
    if isinstance(decision, Cut):
        assert Outside.CUT in allowed
        assert all(name == "tokens" and size < sizes[name] for name, size in decision.dims)
        decision = decision.rest
    if isinstance(decision, Degrade):
        served = assign(dict(decision.fits), PROFILES, WORK, policy)
        assert isinstance(served, Serve | Split)
    else:
        assert math.isfinite(decision.padded_work)
        assert decision.padded_work >= 0


def test_a_plan_s_profiles_are_what_requests_are_assigned_to() -> None:
    histogram = tally(
        ("batch", "tokens"), [{"batch": 1, "tokens": 8}] * 9 + [{"batch": 3, "tokens": 30}]
    )
    bounds = [DimBound("batch", 1, 4), DimBound("tokens", 1, 32)]
    plan = plan_profiles(histogram, 3, bounds=bounds)
    profiles = plan.shape_profiles(INPUTS)
    served = served_profiles(INPUTS, profiles)
    for batch, tokens in [(1, 8), (1, 9), (3, 30), (4, 32), (2, 1)]:
        decision = assign({"batch": batch, "tokens": tokens}, served, WORK)
        feeds = {spec.name: np.ones((batch, tokens), np.int64) for spec in INPUTS}
        assert isinstance(decision, Serve)
        assert decision.profile == check_feeds(feeds, INPUTS, profiles)


CUT = OutsidePolicy(tuple(Outside), cuttable=frozenset({"tokens"}))


@pytest.mark.parametrize(
    ("batch", "tokens", "dims", "rows"),
    [
        (1, 65, {"tokens": 64}, [1]),
        (8, 99, {"tokens": 64}, [8]),
        (9, 99, {"tokens": 64}, [8, 1]),  # and split: the batch is never cut
    ],
)
def test_a_sequence_beyond_every_profile_keeps_as_much_as_fits(
    batch: int, tokens: int, dims: dict[str, int], rows: list[int]
) -> None:
    decision = assign({"batch": batch, "tokens": tokens}, PROFILES, WORK, CUT)
    assert isinstance(decision, Cut)
    assert dict(decision.dims) == dims
    rest = decision.rest
    assert [part.rows for part in rest.parts] == rows if isinstance(rest, Split) else len(rows) == 1


def test_what_fits_is_not_cut_and_what_may_not_be_cut_is_refused() -> None:
    assert isinstance(assign({"batch": 9, "tokens": 64}, PROFILES, WORK, CUT), Split)
    unmasked = OutsidePolicy(tuple(Outside), cuttable=frozenset())
    assert isinstance(assign({"batch": 1, "tokens": 65}, PROFILES, WORK, unmasked), Degrade)
