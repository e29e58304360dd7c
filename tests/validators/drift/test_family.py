from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from validators.drift.family import judge_family, permutations_for, tail_scores


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_an_adjusted_p_value_is_never_below_the_one_alone(seed: int, subjects: int) -> None:
    scores = list(np.random.default_rng(seed).exponential(size=(subjects, 60)))
    found = judge_family(scores)
    for item in found:
        assert 1 / 60 <= item.p_value <= item.adjusted <= 1
    order = sorted(range(subjects), key=lambda index: -scores[index][0])
    adjusted = [found[index].adjusted for index in order]
    assert adjusted == sorted(adjusted)


def test_one_subject_alone_needs_no_adjustment() -> None:
    (found,) = judge_family([np.arange(100.0)[::-1]])
    assert found.p_value == found.adjusted == pytest.approx(1 / 100)


def test_a_feature_told_many_times_costs_as_one() -> None:
    scores = np.random.default_rng(1).normal(size=1000)
    scores[0] = 2.6
    alone = judge_family([scores])[0].adjusted
    assert judge_family([scores] * 50)[0].adjusted == alone
    others = list(np.random.default_rng(2).normal(size=(50, 1000)))
    assert judge_family([scores, *others])[0].adjusted > 5 * alone


def test_under_nothing_new_adjusted_p_values_reject_as_often_as_they_say() -> None:
    generator = np.random.default_rng(3)
    rejected = sum(
        min(item.adjusted for item in judge_family(list(generator.normal(size=(20, 200))))) <= 0.1
        for _ in range(400)
    )
    low, high = stats.binom.ppf([1e-4, 1 - 1e-4], 400, 0.1)
    assert low <= rejected <= high


def test_scores_of_unlike_statistics_have_one_scale() -> None:
    generator = np.random.default_rng(4)
    wide, narrow = generator.chisquare(1, size=4000) * 1e6, generator.chisquare(200, size=4000)
    quantiles = [np.quantile(tail_scores(item), [0.5, 0.9, 0.99]) for item in (wide, narrow)]
    np.testing.assert_allclose(quantiles[0], quantiles[1], rtol=0.25, atol=0.1)


def test_order_is_kept_however_far_out_a_statistic_lies() -> None:
    statistics = np.concatenate([[1e9, 1e8, 1e7], np.random.default_rng(5).normal(size=500)])
    scores = tail_scores(statistics)
    assert scores[0] > scores[1] > scores[2] > scores[3:].max()
    assert np.isfinite(scores).all()


def test_what_never_varies_says_nothing() -> None:
    assert not tail_scores(np.full(50, 3.0)).any()


@given(st.floats(1e-4, 0.2))
def test_there_are_labellings_enough_to_reject_at_all(rate: float) -> None:
    assert 1 / (1 + permutations_for(rate)) <= rate / 2
