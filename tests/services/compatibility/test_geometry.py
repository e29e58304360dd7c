from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from services.compatibility.geometry import (
    count_found,
    distance_between,
    map_by_ridge,
    measure_spread,
    neighbour_overlap,
    neighbours_of,
)

clouds = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 20), st.integers(1, 6)),
    elements=st.floats(-100, 100),
)


@given(clouds)
def test_figures_of_any_cloud_stay_in_their_ranges(cloud: np.ndarray) -> None:
    spread = measure_spread(cloud)
    assert 0 <= spread.effective_rank <= min(cloud.shape) + 1e-6
    assert -1e-9 <= spread.distance_mean <= 2 + 1e-9
    assert 0 <= count_found(cloud, cloud) <= len(cloud)
    neighbours = neighbours_of(len(cloud))
    assert neighbour_overlap(cloud, cloud, neighbours) == pytest.approx(1)
    assert np.isfinite(map_by_ridge(cloud, cloud, cloud)).all()


def test_equal_vectors_are_not_told_apart() -> None:
    assert count_found(np.ones((5, 3)), np.ones((5, 3))) == 0


def test_the_effective_rank_counts_directions() -> None:
    random = np.random.default_rng(0)
    flat = random.standard_normal((200, 2)) @ random.standard_normal((2, 50))
    assert measure_spread(flat).effective_rank < 2.1
    assert measure_spread(random.standard_normal((200, 50))).effective_rank > 40


def test_a_linear_map_is_learnt_from_more_items_than_dimensions_and_from_fewer() -> None:
    random = np.random.default_rng(1)
    weight = random.standard_normal((6, 4))
    rows = random.standard_normal((40, 6))
    mapped = map_by_ridge(rows[:20], rows[:20] @ weight + 3, rows[20:])
    assert mapped == pytest.approx(rows[20:] @ weight + 3, abs=0.05)
    few = map_by_ridge(rows[:4], rows[:4] @ weight, rows[20:])
    assert np.isfinite(few).all()


def test_two_clouds_apart_are_far_from_each_other() -> None:
    random = np.random.default_rng(2)
    here, there = random.standard_normal((2, 30, 5)) * 0.1
    assert distance_between(here + 1, there - 1) > 1.9
    assert distance_between(here + 1, there + 1) < 0.1
