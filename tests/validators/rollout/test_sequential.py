from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from validators.rollout.sequential import (
    ODDS_RATIOS,
    START,
    bet_against_baseline,
    bet_against_limit,
    evidence,
    expected_share,
    raise_odds,
    threshold,
)

shares = st.floats(0.001, 0.5)
sizes = st.integers(1, 12)


def weight(bad: int, total: int, share: float) -> float:
    return float(binom.pmf(bad, total, share))


@given(sizes, sizes, shares, shares, st.floats(0.0, 1.0))
def test_a_block_is_worth_at_most_one_while_the_canary_is_no_worse(
    n: int, m: int, expected: float, baseline: float, better: float
) -> None:
    canary = baseline * better
    mean = sum(
        weight(a, n, canary)
        * weight(b, m, baseline)
        * math.exp(evidence(bet_against_baseline(START, (a, n), (b, m), expected)))
        for a in range(n + 1)
        for b in range(m + 1)
    )
    assert mean <= 1 + 1e-9


@given(sizes, st.floats(0.001, 0.5), st.floats(0.0, 1.0))
def test_a_block_against_a_limit_is_worth_at_most_one_within_it(
    n: int, limit: float, better: float
) -> None:
    mean = sum(
        weight(a, n, limit * better) * math.exp(evidence(bet_against_limit(START, (a, n), limit)))
        for a in range(n + 1)
    )
    assert mean <= 1 + 1e-9


@given(sizes, sizes, shares)
def test_more_bad_requests_on_the_canary_are_more_evidence(n: int, m: int, expected: float) -> None:
    found = [
        evidence(bet_against_baseline(START, (bad, n), (0, m), expected)) for bad in range(n + 1)
    ]
    assert found == sorted(found)


@given(sizes, shares)
def test_without_requests_on_both_sides_nothing_is_learnt(n: int, expected: float) -> None:
    assert bet_against_baseline(START, (n, n), (0, 0), expected) == START
    assert bet_against_baseline(START, (0, 0), (0, n), expected) == START
    assert bet_against_limit(START, (0, 0), expected) == START


@given(shares, st.sampled_from(ODDS_RATIOS))
def test_raised_odds_stay_a_share(share: float, ratio: float) -> None:
    assert share < raise_odds(share, ratio) < 1


@pytest.mark.parametrize(
    ("bad", "total", "usual", "least", "most"),
    [(0, 0, 0.01, 0.01, 0.01), (0, 10**6, 0.01, 0.001, 0.001), (900, 1000, 0.01, 0.5, 0.5)],
)
def test_an_expected_share_keeps_between_its_bounds(
    bad: int, total: int, usual: float, least: float, most: float
) -> None:
    assert least <= expected_share(bad, total, usual) <= most


def test_more_tests_need_more_evidence() -> None:
    assert threshold(0.04, 1) < threshold(0.04, 7) == pytest.approx(math.log(175))
