from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import spearmanr

from services.compatibility.geometry import (
    distance_between,
    find_own,
    fit_ridge_map,
    measure_spread,
    neighbour_overlap,
    neighbours_of,
    paired_cosines,
    rank_correlation,
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
    neighbours = neighbours_of(len(cloud))
    found = find_own(cloud, cloud, neighbours)
    assert not (found.first & ~found.within).any()
    assert (neighbour_overlap(cloud, cloud, neighbours) == 1).all()
    assert np.isfinite(fit_ridge_map(cloud, cloud)(cloud)).all()
    correlated = rank_correlation(cloud, cloud)
    assert correlated is None or correlated.value == pytest.approx(1)


def test_equal_vectors_are_not_told_apart() -> None:
    assert not find_own(np.ones((5, 3)), np.ones((5, 3)), 3).within.any()


def test_the_effective_rank_counts_directions() -> None:
    random = np.random.default_rng(0)
    flat = random.standard_normal((200, 2)) @ random.standard_normal((2, 50))
    assert measure_spread(flat).effective_rank < 2.1
    assert measure_spread(random.standard_normal((200, 50))).effective_rank > 40


def test_a_linear_map_is_learnt_from_more_items_than_dimensions_and_from_fewer() -> None:
    random = np.random.default_rng(1)
    weight = random.standard_normal((6, 4))
    rows = random.standard_normal((40, 6))
    mapped = fit_ridge_map(rows[:20], rows[:20] @ weight + 3)(rows[20:])
    assert mapped == pytest.approx(rows[20:] @ weight + 3, abs=0.05)
    few = fit_ridge_map(rows[:4], rows[:4] @ weight)(rows[20:])
    assert np.isfinite(few).all()


def test_two_clouds_apart_are_far_from_each_other() -> None:
    random = np.random.default_rng(2)
    here, there = random.standard_normal((2, 30, 5)) * 0.1
    assert distance_between(here + 1, there - 1) > 1.9
    assert distance_between(here + 1, there + 1) < 0.1


def test_rank_correlation_is_spearmans_with_ties() -> None:
    random = np.random.default_rng(3)
    first = random.integers(0, 2, (12, 4)).astype(float)  # few distinct similarities
    second = first + 0.3 * random.standard_normal((12, 4))
    upper = np.triu_indices(12, 1)
    similar = [np.round(cosines(item), 6)[upper] for item in (first, second)]
    found = rank_correlation(first, second)
    assert found is not None
    assert found.value == pytest.approx(spearmanr(*similar).statistic)
    assert found.low < found.value < found.high


def test_unrelated_clouds_do_not_correlate() -> None:
    random = np.random.default_rng(4)
    found = rank_correlation(random.standard_normal((60, 9)), random.standard_normal((60, 9)))
    assert found is not None and found.low < 0 < found.high


def test_without_any_variation_there_is_no_rank_correlation() -> None:
    assert rank_correlation(np.ones((6, 3)), np.random.default_rng(0).random((6, 3))) is None
    assert rank_correlation(np.eye(3), np.eye(3)) is None


def test_vectors_near_the_end_of_the_range_of_numbers_keep_their_direction() -> None:
    rows = np.random.default_rng(5).standard_normal((6, 4))
    for scale in (1e-300, 1e300):
        assert paired_cosines(rows, rows * scale) == pytest.approx(np.ones(6))


def cosines(rows: np.ndarray) -> np.ndarray:
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return np.asarray(unit @ unit.T)
