from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.precision.timing import LEVEL, compare_rounds

TIMES = st.lists(st.floats(0.01, 1e4), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("ours", "theirs", "faster", "slower"),
    [
        ([1, 1, 1, 1, 1], [2, 2, 2, 2, 2], True, False),
        ([2, 2, 2, 2, 2], [1, 1, 1, 1, 1], False, True),
        ([1, 1, 1, 1, 3], [2, 2, 2, 2, 2], False, False),  # one of five rounds disagrees
        ([1, 1, 1, 1], [9, 9, 9, 9], False, False),  # four rounds can never say it
        ([1] * 7 + [40], [2] * 8, True, False),  # of eight, one may stall
        ([1] * 6 + [40, 40], [2] * 8, False, False),
        ([1, 1, 1, 1, 1], [1, 1, 1, 1, 1], False, False),
        ([], [], False, False),
    ],
)
def test_faster_means_that_the_rounds_agree(
    ours: list[float], theirs: list[float], faster: bool, slower: bool
) -> None:
    found = compare_rounds(ours, theirs)
    assert (found.faster, found.slower) == (faster, slower)


@given(st.lists(st.tuples(st.floats(0.01, 1e4), st.floats(0.01, 1e4)), min_size=1, max_size=12))
def test_the_other_way_round_says_the_opposite(pairs: list[tuple[float, float]]) -> None:
    ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
    one, other = compare_rounds(ours, theirs), compare_rounds(theirs, ours)
    assert one.ratio == pytest.approx(1 / other.ratio)
    assert (one.faster, one.slower) == (other.slower, other.faster)
    assert one.low <= one.ratio * (1 + 1e-9) and one.ratio <= one.high * (1 + 1e-9)


@given(TIMES, st.floats(0.01, 100))
def test_a_machine_that_is_slow_for_both_changes_nothing(times: list[float], factor: float) -> None:
    theirs = [time * 1.5 for time in times]
    plain = compare_rounds(times, theirs)
    slowed = compare_rounds([t * factor for t in times], [t * factor for t in theirs])
    assert slowed.ratio == pytest.approx(plain.ratio)
    assert slowed.faster == plain.faster


def test_noise_alone_says_faster_no_more_often_than_the_level() -> None:
    draw = random.Random(7)
    trials = 4000
    wrong = sum(
        compare_rounds(
            [math.exp(draw.gauss(0, 0.3)) for _ in range(7)],
            [math.exp(draw.gauss(0, 0.3)) for _ in range(7)],
        ).faster
        for _ in range(trials)
    )
    assert wrong / trials < LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / trials)
