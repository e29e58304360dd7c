"""The weighted mean of unit vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.fusion.mean import fuse_vectors

X, Y = np.array([1, 0], np.float32), np.array([0, 1], np.float32)


def test_one_vector_is_its_own_mean() -> None:
    assert fuse_vectors([X], [5.0]).tolist() == [1, 0]


def test_the_heavier_vector_pulls_harder() -> None:
    assert fuse_vectors([X, Y], [3.0, 4.0]) == pytest.approx([0.6, 0.8])


def test_vectors_that_cancel_leave_nothing() -> None:
    assert fuse_vectors([X, -X], [1.0, 1.0]).tolist() == [0, 0]


@given(st.lists(st.tuples(st.floats(0, 6.28), st.floats(0.01, 100.0)), min_size=1, max_size=5))
def test_the_mean_has_length_one_whatever_the_scale_of_the_weights(
    parts: list[tuple[float, float]],
) -> None:
    vectors = [np.array([np.cos(a), np.sin(a)], np.float32) for a, _ in parts]
    weights = [weight for _, weight in parts]
    mean = fuse_vectors(vectors, weights)
    total = np.tensordot(weights, np.stack(vectors).astype(float), axes=1)
    if np.linalg.norm(total) > 1e-6 * sum(weights):
        assert np.linalg.norm(mean) == pytest.approx(1.0, abs=1e-5)
        scaled = fuse_vectors(vectors, [7.0 * weight for weight in weights])
        assert scaled == pytest.approx(mean, abs=1e-5)
