from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.rehearsal.bounds import (
    minimum_for_upper_bound,
    quantile_lower,
    quantile_of,
    quantile_upper,
    share_bounds,
)


@pytest.mark.parametrize(("quantile", "minimum"), [(0.99, 299), (0.95, 59), (0.5, 5)])
def test_an_upper_bound_needs_this_many_values(quantile: float, minimum: int) -> None:
    assert minimum_for_upper_bound(quantile) == minimum
    values = [float(number) for number in range(minimum)]
    assert quantile_upper(values, quantile) == minimum - 1
    assert quantile_upper(values[1:], quantile) is None


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=400), st.sampled_from([0.5, 0.95, 0.99]))
def test_the_quantile_lies_between_its_bounds(values: list[float], quantile: float) -> None:
    here = quantile_of(values, quantile)
    upper, lower = quantile_upper(values, quantile), quantile_lower(values, quantile)
    assert upper is None or here <= upper
    assert lower is None or lower <= here


@pytest.mark.parametrize("count", [299, 500, 1200])
def test_the_bounds_hold_as_often_as_they_say(count: int) -> None:
    random = np.random.default_rng(count)
    true = -np.log(0.01)
    rounds = 1000
    above = below = 0
    for _ in range(rounds):
        values = random.exponential(size=count).tolist()
        upper, lower = quantile_upper(values, 0.99), quantile_lower(values, 0.99)
        assert upper is not None
        above += upper >= true
        below += lower is None or lower <= true
    # Three standard errors of 95 % over 1,000 rounds.
    assert above / rounds > 0.93 and below / rounds > 0.93


@given(st.integers(1, 500), st.data())
def test_a_share_lies_between_its_bounds(total: int, data: st.DataObject) -> None:
    bad = data.draw(st.integers(0, total))
    lower, upper = share_bounds(bad, total)
    assert 0 <= lower <= bad / total <= upper <= 1
