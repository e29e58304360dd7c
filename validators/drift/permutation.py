"""Two-sample tests by permutation of the pooled sample, and control of many tests at once.

The null is drawn from the pooled sample (a null drawn from the reference alone alarms far more
often than it says). A p-value is (1 + exceedances) / (1 + permutations), so it is never zero and
its false-alarm rate holds exactly (Phipson and Smyth, 2010).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]

_CHUNK_CELLS = 4_000_000  # permutations are drawn in blocks of about this many labels
_BANDWIDTH_SAMPLE = 512


@dataclass(frozen=True, slots=True)
class TwoSample:
    """What one test measured. `effect` is free of scale and of sample size."""

    effect: float
    p_value: float


def compare_scalars(
    reference: Floats, current: Floats, *, permutations: int, seed: int
) -> TwoSample:
    """Kolmogorov-Smirnov distance of two samples [n], [m]; the effect is the distance, 0..1."""
    pooled = np.concatenate([reference, current]).astype(np.float64)
    order = np.argsort(pooled, kind="stable")
    in_order = pooled[order]
    last_of_tie = np.append(np.flatnonzero(np.diff(in_order)), len(in_order) - 1)
    first = len(reference)
    observed_labels = (order < first)[None, :]
    observed = float(_ks(observed_labels, first, last_of_tie)[0])
    null = np.concatenate(
        [
            _ks(labels, first, last_of_tie)
            for labels in _labellings(len(pooled), first, permutations, seed)
        ]
    )
    return TwoSample(observed, _p_value(observed, null))


def compare_vectors(
    reference: Floats, current: Floats, *, permutations: int, seed: int, features: int = 256
) -> TwoSample:
    """Maximum mean discrepancy of two sets of vectors [n, D], [m, D].

    A Gaussian kernel by random Fourier features (Rahimi and Recht, 2007), its bandwidth the median
    distance of the pooled sample (Gretton et al., 2012). The effect is the distance of the two
    means in feature space beyond what chance gives, in units of the spread around the mean.
    """
    pooled = np.concatenate([reference, current]).astype(np.float64)
    mapped = _fourier(pooled, features, seed)
    mapped -= mapped.mean(axis=0)
    first = len(reference)
    observed_labels = (np.arange(len(pooled)) < first)[None, :]
    observed = float(_mean_distance(observed_labels, mapped, first)[0])
    null = np.concatenate(
        [
            _mean_distance(labels, mapped, first)
            for labels in _labellings(len(pooled), first, permutations, seed + 1)
        ]
    )
    spread = max(float(np.mean(np.sum(mapped**2, axis=1))), 1e-12)
    beyond_chance = max(observed - float(null.mean()), 0.0)
    return TwoSample(float(np.sqrt(beyond_chance / spread)), _p_value(observed, null))


def rejected(p_values: Sequence[float], rate: float, *, arbitrary_dependence: bool) -> list[bool]:
    """Which hypotheses fall at a false discovery rate.

    Benjamini-Hochberg (1995), or with `arbitrary_dependence` Benjamini-Yekutieli (2001). Where
    nothing drifted, the chance of any rejection is at most `rate`.
    """
    count = len(p_values)
    if not count:
        return []
    limits = (
        rate * np.arange(1, count + 1) / (count * dependence_factor(count, arbitrary_dependence))
    )
    order = np.argsort(np.asarray(p_values), kind="stable")
    below = np.flatnonzero(np.asarray(p_values)[order] <= limits)
    cut = int(below[-1]) + 1 if below.size else 0
    fallen = set(order[:cut].tolist())
    return [index in fallen for index in range(count)]


def dependence_factor(tests: int, arbitrary_dependence: bool) -> float:
    """Benjamini-Yekutieli's sum 1 + 1/2 + ... + 1/tests, or 1."""
    return float(np.sum(1.0 / np.arange(1, tests + 1))) if arbitrary_dependence else 1.0


def permutations_for(tests: int, rate: float, arbitrary_dependence: bool) -> int:
    """Enough permutations for the smallest p-value to lie at half the strictest limit."""
    strictest = rate / (tests * dependence_factor(tests, arbitrary_dependence))
    return max(199, int(np.ceil(2 / strictest)) - 1)


def _labellings(size: int, first: int, count: int, seed: int) -> Iterator[npt.NDArray[np.bool_]]:
    """Random memberships [k, size], each row with `first` members of the first sample."""
    generator = np.random.default_rng(seed)
    done = 0
    while done < count:
        rows = min(count - done, max(1, _CHUNK_CELLS // size))
        ranks = np.argpartition(generator.random((rows, size), np.float32), first - 1, axis=1)
        labels = np.zeros((rows, size), dtype=np.bool_)
        np.put_along_axis(labels, ranks[:, :first], True, axis=1)
        yield labels
        done += rows


def _ks(labels: npt.NDArray[np.bool_], first: int, last_of_tie: npt.NDArray[np.intp]) -> Floats:
    size = labels.shape[1]
    seen = np.cumsum(labels, axis=1, dtype=np.int32)[:, last_of_tie]
    others = (last_of_tie + 1)[None, :] - seen
    distance: Floats = np.abs(seen / first - others / (size - first)).max(axis=1)
    return distance


def _fourier(vectors: Floats, features: int, seed: int) -> npt.NDArray[np.float64]:
    generator = np.random.default_rng(seed)
    bandwidth = _median_distance(vectors, generator)
    weights = generator.normal(scale=1.0 / bandwidth, size=(vectors.shape[1], features // 2))
    projected: npt.NDArray[np.float64] = vectors @ weights
    mapped = np.concatenate([np.cos(projected), np.sin(projected)], axis=1)
    mapped *= np.sqrt(2.0 / features)
    return mapped


def _median_distance(vectors: Floats, generator: np.random.Generator) -> float:
    picked = np.sort(generator.permutation(len(vectors))[:_BANDWIDTH_SAMPLE])
    chosen = vectors[picked]
    squares = np.sum(chosen**2, axis=1)
    squared = squares[:, None] + squares[None, :] - 2 * chosen @ chosen.T
    upper = squared[np.triu_indices(len(chosen), 1)]
    distance = float(np.sqrt(np.median(np.maximum(upper, 0)))) if upper.size else 0.0
    return distance if distance > 1e-9 else 1.0


def _mean_distance(labels: npt.NDArray[np.bool_], centred: Floats, first: int) -> Floats:
    """Squared distance of the two means; the features are centred, so one mean gives the other."""
    size = labels.shape[1]
    mean = labels.astype(np.float64) @ centred / first
    squared: Floats = np.sum(mean**2, axis=1) * (size / (size - first)) ** 2
    return squared


def _p_value(observed: float, null: Floats) -> float:
    tolerance = 1e-12 * max(abs(observed), 1.0)
    return float((1 + np.count_nonzero(null >= observed - tolerance)) / (1 + len(null)))
