"""A reservoir is fair, bounded, and forgets the order."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.reservoir import Reservoir


@given(st.integers(1, 20), st.integers(0, 200), st.integers())
def test_it_keeps_as_many_as_it_may_of_what_it_saw(limit: int, offered: int, seed: int) -> None:
    kept = Reservoir[int](limit, random.Random(seed))
    for number in range(offered):
        place = kept.offer()
        if place is not None:
            kept.put(place, number)
    assert kept.seen == offered
    assert len(kept) == len(kept.rows()) == min(limit, offered)
    assert set(kept.rows()) <= set(range(offered))


def test_every_row_is_as_likely_to_be_kept() -> None:
    """300 fillings of 50 rows into 10 places: chi-square of 49 degrees, 99.9 % below 86."""
    chance, counts = random.Random(7), np.zeros(50)
    for _ in range(300):
        kept = Reservoir[int](10, chance)
        for number in range(50):
            place = kept.offer()
            if place is not None:
                kept.put(place, number)
        counts[kept.rows()] += 1
    expected = 300 * 10 / 50
    assert ((counts - expected) ** 2 / expected).sum() < 86


def test_a_million_offers_ask_for_few_rows() -> None:
    kept = Reservoir[int](512, random.Random(3))
    asked = sum(kept.offer() is not None for _ in range(1_000_000))
    assert asked < 512 * (1 + np.log(1_000_000 / 512)) * 1.2


def test_what_turned_out_to_be_no_row_was_not_seen() -> None:
    kept = Reservoir[int](4, random.Random(3))
    places = [kept.offer() for _ in range(3)]
    assert places == [0, 1, 2]
    kept.put(0, 10)
    kept.withdraw()
    kept.put(2, 12)
    assert (sorted(kept.rows()), kept.seen, len(kept)) == ([10, 12], 2, 2)


@pytest.mark.parametrize("seed", [1, 2])
def test_rows_come_in_no_order_of_time(seed: int) -> None:
    kept = Reservoir[int](50, random.Random(seed))
    for number in range(50):
        kept.put(kept.offer() or 0, number)
    assert kept.rows() != sorted(kept.rows())
