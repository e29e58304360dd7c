from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from validators.drift.detectors import (
    DEFAULT_DETECTORS,
    Detector,
    EnergyDistance,
    KernelMeans,
    SecondMoments,
    ShrunkMeans,
    distances,
    median_distance,
    principal,
)
from validators.drift.family import judge_family
from validators.drift.labelling import Units, draw_memberships

ALL: tuple[Detector, ...] = (*DEFAULT_DETECTORS, EnergyDistance())
ROWS, SIZE = 120, 24


def p_value(detector: Detector, reference: npt.ArrayLike, current: npt.ArrayLike) -> float:
    pooled = np.concatenate([reference, current]).astype(np.float32)
    features = detector.features(pooled, 1).astype(np.float64)
    drawn = draw_memberships(Units.of_rows(len(pooled) - ROWS, ROWS), 399, 2)
    moved = drawn @ features / ROWS
    return judge_family([np.sum(moved**2, axis=1)])[0].p_value


def cloud(seed: int) -> npt.NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=(ROWS, SIZE)) * np.arange(1, SIZE + 1) ** -0.5


@pytest.mark.parametrize("detector", ALL, ids=lambda item: item.name)
def test_a_cloud_that_moved_is_seen_and_one_that_did_not_is_not(detector: Detector) -> None:
    moved = cloud(2) * 1.4 + 0.6
    assert p_value(detector, cloud(1), moved) <= 0.01
    assert p_value(detector, cloud(1), cloud(3)) > 0.01


@pytest.mark.parametrize("detector", ALL, ids=lambda item: item.name)
@pytest.mark.parametrize("rows", [2, 5, 60])
def test_features_are_finite_whatever_the_vectors_are(detector: Detector, rows: int) -> None:
    alike = np.ones((rows, 6), np.float32)
    for vectors in (alike, np.eye(rows, 6, dtype=np.float32), alike * np.float32(1e6)):
        found = detector.features(vectors, 3)
        assert found.shape[0] == rows
        assert np.isfinite(found).all()


@pytest.mark.parametrize("detector", ALL, ids=lambda item: item.name)
def test_the_same_seed_gives_the_same_features(detector: Detector) -> None:
    vectors = cloud(4).astype(np.float32)
    assert (detector.features(vectors, 7) == detector.features(vectors, 7)).all()


def test_only_shrunk_means_see_a_shift_where_vectors_hardly_vary() -> None:
    stiff = cloud(5) * np.r_[np.ones(SIZE - 1), 0.05]
    other = cloud(6) * np.r_[np.ones(SIZE - 1), 0.05] + np.r_[np.zeros(SIZE - 1), 0.05]
    assert p_value(ShrunkMeans(shrinkage=0.001), stiff, other) <= 0.01
    assert p_value(KernelMeans(), stiff, other) > 0.01


def test_only_second_moments_see_coordinates_that_change_how_they_vary_together() -> None:
    first, second = cloud(7), cloud(8)
    second[:, 0] = 0.9 * second[:, 1] * 2**0.5 + 0.4 * second[:, 0]
    second[:, 0] *= first[:, 0].std() / second[:, 0].std()
    assert p_value(SecondMoments(), first, second) <= 0.01
    assert p_value(ShrunkMeans(), first, second) > 0.01


def test_energy_features_give_the_energy_distance() -> None:
    one, other = cloud(9)[:40].astype(np.float32), cloud(10)[:40].astype(np.float32) + 0.3
    pooled = np.concatenate([one, other])
    features = EnergyDistance(landmarks=200).features(pooled, 1)
    ours = np.sum((features[:40].mean(axis=0) - features[40:].mean(axis=0)) ** 2)
    exact = (
        distances(one, other).mean()
        - distances(one, one).mean() / 2
        - distances(other, other).mean() / 2
    )
    assert ours == pytest.approx(exact, rel=0.02)


def test_principal_coordinates_are_those_of_the_whole_decomposition() -> None:
    vectors = cloud(11).astype(np.float32)
    _, variances = principal(vectors, 5, 0)
    exact = np.linalg.svd(vectors - vectors.mean(axis=0), compute_uv=False)[:5] ** 2 / ROWS
    np.testing.assert_allclose(variances, exact, rtol=0.03)


def test_the_median_distance_of_things_alike_is_one() -> None:
    assert median_distance(np.ones((9, 3), np.float32), np.random.default_rng(0)) == 1.0
