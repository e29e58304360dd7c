from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.lineage.multiplicity import permutations_for, rejected

shares = st.floats(0, 1)


@pytest.mark.parametrize(
    ("p_values", "expected"),
    [
        ([], []),
        ([0.009], [True]),
        ([0.011], [False]),
        ([0.009, 0.5], [False, False]),  # two tests: 1.5 times as strict, and half of it first
        ([0.003, 0.5], [True, False]),
        ([0.003, 0.006], [True, True]),
    ],
)
def test_the_more_tests_the_stricter(p_values: list[float], expected: list[bool]) -> None:
    assert rejected(p_values, 0.01) == expected


@given(st.lists(shares, min_size=1, max_size=20))
def test_their_order_does_not_matter_and_smaller_ones_fall_first(
    p_values: list[float],
) -> None:
    fallen = rejected(p_values, 0.05)
    kept = [p for p, fell in zip(p_values, fallen, strict=True) if not fell]
    gone = [p for p, fell in zip(p_values, fallen, strict=True) if fell]
    assert max(gone, default=0) <= min(kept, default=1)
    assert rejected(p_values[::-1], 0.05) == fallen[::-1]


@given(st.integers(1, 40), st.floats(0.001, 0.2))
def test_there_are_permutations_enough_for_the_strictest_limit(tests: int, rate: float) -> None:
    least = 1 / (1 + permutations_for(tests, rate))
    assert rejected([least] + [1.0] * (tests - 1), rate)[0]
