from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from validators.drift.permutation import (
    compare_scalars,
    compare_vectors,
    permutations_for,
    rejected,
)


@pytest.mark.parametrize("decimals", [6, 0])  # without ties and with many
def test_the_distance_is_that_of_kolmogorov_and_smirnov(decimals: int) -> None:
    generator = np.random.default_rng(3)
    one = generator.normal(size=70).round(decimals)
    two = generator.normal(0.7, size=50).round(decimals)
    ours = compare_scalars(one, two, permutations=999, seed=1)
    theirs = stats.ks_2samp(one, two)
    assert ours.effect == pytest.approx(theirs.statistic)
    if decimals:
        assert ours.p_value == pytest.approx(theirs.pvalue, abs=0.02)


def test_vectors_far_apart_are_told_apart_and_alike_ones_are_not() -> None:
    generator = np.random.default_rng(4)
    reference, same = generator.normal(size=(2, 80, 16))
    moved = generator.normal(0.8, size=(80, 16))
    far = compare_vectors(reference, moved, permutations=499, seed=1)
    near = compare_vectors(reference, same, permutations=499, seed=1)
    assert far.p_value == pytest.approx(1 / 500)
    assert near.p_value > 0.02
    assert far.effect > 5 * near.effect


def test_a_change_of_spread_alone_is_seen_in_vectors() -> None:
    generator = np.random.default_rng(5)
    wide = generator.normal(scale=2, size=(120, 8))
    narrow = generator.normal(size=(120, 8))
    assert compare_vectors(narrow, wide, permutations=499, seed=1).p_value < 0.01


def test_the_same_seed_gives_the_same_answer() -> None:
    values = np.random.default_rng(6).normal(size=(2, 40))
    once = compare_scalars(*values, permutations=199, seed=9)
    assert once == compare_scalars(*values, permutations=199, seed=9)


@given(st.lists(st.floats(0, 1), max_size=12), st.floats(0.001, 0.2))
def test_the_step_up_agrees_with_scipy(p_values: list[float], rate: float) -> None:
    for arbitrary, method in ((False, "bh"), (True, "by")):
        ours = rejected(p_values, rate, arbitrary_dependence=arbitrary)
        theirs = (
            stats.false_discovery_control(p_values, method=method) if p_values else np.array([])
        )
        doubtful = np.isclose(theirs, rate, rtol=1e-9, atol=0)
        assert [a == b or d for a, b, d in zip(ours, theirs <= rate, doubtful, strict=True)] == [
            True
        ] * len(p_values)


@given(st.integers(1, 60), st.floats(0.001, 0.2))
def test_there_are_enough_permutations_to_reject_at_all(tests: int, rate: float) -> None:
    smallest = 1 / (1 + permutations_for(tests, rate, True))
    p_values = [smallest] + [1.0] * (tests - 1)
    assert rejected(p_values, rate, arbitrary_dependence=True)[0]
