"""Ways to see that two clouds of vectors differ, interchangeable behind `Detector`.

Each turns the pooled vectors, without knowing which window they are from, into features of which
only the means of the two windows are compared: one matrix product then judges all permutations at
once. Which ones the gate uses was decided by measured power: docs/decisions/0022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]

_NEIGHBOURS = 512  # vectors that the median distance is taken of
_ENOUGH = 1e-9


class Detector(Protocol):
    """Features of pooled vectors: a difference of their means is a difference of the windows."""

    @property
    def name(self) -> str: ...

    def features(self, pooled: Matrix, seed: int) -> Matrix:
        """[n, D] to centred features [n, q]; the same seed gives the same features."""
        ...


@dataclass(frozen=True, slots=True)
class KernelMeans:
    """Maximum mean discrepancy (Gretton et al., 2012) of a Gaussian kernel.

    By random Fourier features (Rahimi and Recht, 2007). Its bandwidth is `factor` times the median
    distance. It sees whatever moves a good part of the vectors by about that much.
    """

    size: int = 256
    factor: float = 0.5

    @property
    def name(self) -> str:
        return "kernel-means"

    def features(self, pooled: Matrix, seed: int) -> Matrix:
        generator = np.random.default_rng(seed)
        bandwidth = self.factor * median_distance(pooled, generator)
        drawn = generator.normal(scale=1 / bandwidth, size=(pooled.shape[1], self.size // 2))
        projected = pooled @ drawn.astype(np.float32)
        mapped = np.concatenate([np.cos(projected), np.sin(projected)], axis=1)
        return centred(mapped * np.float32(np.sqrt(2 / self.size)))


@dataclass(frozen=True, slots=True)
class ShrunkMeans:
    """Means in units of the pooled spread of every direction, the smallest ones shrunk.

    It is the squared distance that a linear discriminant separates by (Hotelling's T-squared with
    Friedman's shrinkage, 1989): it sees a shift along a direction in which vectors hardly vary.
    """

    size: int = 64
    shrinkage: float = 0.1

    @property
    def name(self) -> str:
        return "shrunk-means"

    def features(self, pooled: Matrix, seed: int) -> Matrix:
        scores, variances = principal(pooled, min(self.size, max(1, len(pooled) // 4)), seed)
        floor = self.shrinkage * float(pooled.var(axis=0).mean())
        return np.asarray(scores / np.sqrt(variances + floor + _ENOUGH), np.float32)


@dataclass(frozen=True, slots=True)
class SecondMoments:
    """Products of the leading principal coordinates: scale, correlation and rotation.

    What leaves every mean where it was, such as a mode that shrinks while another one grows, still
    changes how coordinates vary together.
    """

    size: int = 12

    @property
    def name(self) -> str:
        return "second-moments"

    def features(self, pooled: Matrix, seed: int) -> Matrix:
        scores, variances = principal(pooled, min(self.size, max(1, len(pooled) // 10)), seed)
        unit = scores / np.sqrt(variances + _ENOUGH)
        one, other = np.triu_indices(unit.shape[1])
        products = centred(unit[:, one] * unit[:, other])
        return np.asarray(products / (products.std(axis=0) + _ENOUGH), np.float32)


@dataclass(frozen=True, slots=True)
class EnergyDistance:
    """Energy distance (Szekely and Rizzo, 2013), by Nystrom features of its kernel."""

    landmarks: int = 256

    @property
    def name(self) -> str:
        return "energy"

    def features(self, pooled: Matrix, seed: int) -> Matrix:
        generator = np.random.default_rng(seed)
        chosen = pooled[np.sort(generator.permutation(len(pooled))[: self.landmarks])]
        centre = pooled.mean(axis=0, keepdims=True)
        radius, reach = distances(pooled, centre), distances(chosen, centre)
        cross = (radius + reach.T - distances(pooled, chosen)) / 2
        inner = (reach + reach.T - distances(chosen, chosen)) / 2
        values, vectors = np.linalg.eigh(inner.astype(np.float64))
        kept = values > values[-1] * 1e-6
        root = vectors[:, kept] / np.sqrt(values[kept])
        return centred(np.asarray(cross @ root, np.float32))


DEFAULT_DETECTORS: tuple[Detector, ...] = (KernelMeans(), ShrunkMeans(), SecondMoments())
"""What the gate uses, chosen by measured power."""


def principal(vectors: Matrix, count: int, seed: int) -> tuple[Matrix, Matrix]:
    """The leading principal coordinates [n, r] and their variances [r], largest first.

    By a randomised range finder with two power iterations (Halko, Martinsson and Tropp, 2011).
    """
    flat = centred(vectors)
    count = min(count, *flat.shape)
    generator = np.random.default_rng(seed)
    probe = generator.normal(size=(flat.shape[1], min(count + 16, flat.shape[1])))
    basis = flat @ probe.astype(np.float32)
    for _ in range(2):
        basis = flat @ (flat.T @ np.linalg.qr(basis)[0])
    small = np.linalg.qr(basis)[0].T @ flat
    directions = np.linalg.svd(small, full_matrices=False)[2][:count]
    scores = flat @ directions.T
    return scores, scores.var(axis=0)


def median_distance(vectors: Matrix, generator: np.random.Generator) -> float:
    """Of a bounded sample; 1 where all are alike."""
    chosen = vectors[np.sort(generator.permutation(len(vectors))[:_NEIGHBOURS])]
    apart = distances(chosen, chosen)[np.triu_indices(len(chosen), 1)]
    median = float(np.median(apart)) if apart.size else 0.0
    return median if median > _ENOUGH else float(apart.mean()) if apart.any() else 1.0


def distances(one: Matrix, other: Matrix) -> Matrix:
    """Euclidean distances [n, m]."""
    squares = np.sum(one**2, axis=1)[:, None] + np.sum(other**2, axis=1)[None, :]
    return np.asarray(np.sqrt(np.maximum(squares - 2 * one @ other.T, 0)), np.float32)


def centred(values: npt.NDArray[Any]) -> Matrix:
    return np.asarray(values - values.mean(axis=0), np.float32)
