from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.timebase.lines import fit_line
from services.ingest.timebase.stamps import read_stamps

PERIOD_NS = 100_000_000
POINTS = st.lists(st.tuples(st.integers(0, 9), st.integers(-(10**9), 10**9)), max_size=24)


@given(POINTS)
def test_a_line_is_finite_or_none(points: list[tuple[int, int]]) -> None:
    line = fit_line([x for x, _ in points], [y for _, y in points])
    if line is None:
        return
    assert np.isfinite([line.slope, line.offset]).all()
    assert line.low <= line.slope <= line.high


def test_points_at_one_place_are_taken_together() -> None:
    line = fit_line([0, 1, 2, 2, 2, 3, 4], [0, 2, 4, 4, 99, 6, 8])
    assert line is not None and line.slope == pytest.approx(2)
    assert fit_line([1, 1, 1, 1], [1, 2, 3, 4]) is None
    assert fit_line([1, 2, 2, 2], [1, 2, 3, 4]) is None


@pytest.mark.parametrize("held", [1, 7, 8, 10, 50, 150, 199])
def test_a_clock_that_stands_still_is_read(held: int) -> None:
    """As through a leap second, whose stamps are all one."""
    times = np.arange(200, dtype=np.int64) * PERIOD_NS
    times[100 : 100 + held] = times[100]
    facts = read_stamps(np.maximum.accumulate(times), PERIOD_NS)
    assert facts is not None and facts.count == 200
