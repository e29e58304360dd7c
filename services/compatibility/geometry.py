"""Two clouds of vectors over the same items: how alike they are, raw and through a learned map.

All functions take finite [N, D] arrays, row i of both being item i. Similarities are cosines,
rounded to what float32 vectors can tell apart, so that equal vectors tie however they were summed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from services.compatibility.bootstrap import percentiles, resampled_counts
from validators.compatibility.estimates import Estimate
from validators.compatibility.measured import Spread

Matrix = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

NEIGHBOURS = 10
MAX_CORRELATED = 512
"""Items whose pairs are ranked: more are thinned evenly."""

_DECIMALS = 6
_RIDGES = np.logspace(-4, 2, 13)
_TINY = 1e-12


def unit_rows(vectors: npt.NDArray[np.generic]) -> Matrix:
    """The rows at length one; a row of zeros stays."""
    rows = np.asarray(vectors, dtype=np.float64)
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0)
    rows = rows / np.where(largest > 0, largest, 1)  # squares neither overflow nor vanish
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1))


def similarities(first: Matrix, second: Matrix) -> Matrix:
    """The cosine of every row of the one with every row of the other."""
    return np.asarray(np.round(unit_rows(first) @ unit_rows(second).T, _DECIMALS))


def paired_cosines(first: Matrix, second: Matrix) -> Matrix:
    """The cosine of each row pair, [N]."""
    return np.asarray(np.sum(unit_rows(first) * unit_rows(second), axis=1))


@dataclass(frozen=True, slots=True)
class Found:
    """Which queries found their own item: as the nearest one, and among the `k` nearest."""

    first: Flags
    within: Flags


def find_own(queries: Matrix, index: Matrix, k: int) -> Found:
    """Row i of the queries looks for row i of the index, a tie counting against it."""
    similar = similarities(queries, index)
    ahead = (similar >= np.diagonal(similar)[:, None]).sum(axis=1) - 1
    return Found(ahead < 1, ahead < k)


def neighbours_of(count: int) -> int:
    """How many neighbours are compared among so many items: at most a third of the others."""
    return max(1, min(NEIGHBOURS, (count - 1) // 3))


def neighbour_overlap(first: Matrix, second: Matrix, neighbours: int) -> Matrix:
    """The share of each item's nearest items that both spaces agree on, [N]."""
    if len(first) < 2:
        return np.zeros(len(first))
    here, there = _nearest(first, neighbours), _nearest(second, neighbours)
    return np.asarray((here[:, :, None] == there[:, None, :]).any(axis=2).mean(axis=1))


def rank_correlation(first: Matrix, second: Matrix) -> Estimate | None:
    """Spearman's correlation of all pairwise similarities, ties at their mean rank.

    Items are resampled, not pairs, which depend on each other; each pair keeps its rank among all
    pairs. None for fewer than four items, or where all pairs of one space are equally similar.
    """
    step = -(-len(first) // MAX_CORRELATED)
    first, second = first[:: max(step, 1)], second[:: max(step, 1)]
    count = len(first)
    if count < 4:
        return None
    upper = np.triu_indices(count, 1)
    ranks = [_ranks(similarities(item, item), upper) for item in (first, second)]
    here, there = ranks
    pairs = np.ones((count, count)) - np.eye(count)
    forms = (pairs, here, there, here * here, there * there, here * there)
    value = _correlate(np.ones((1, count)), forms)[0]
    if not np.isfinite(value):
        return None
    drawn = _correlate(resampled_counts(count).astype(np.float64), forms)
    low, high = percentiles(drawn[np.isfinite(drawn)])
    bounded = np.clip([value, min(low, value), max(high, value)], -1, 1)
    return Estimate(float(bounded[0]), float(bounded[1]), float(bounded[2]), count)


def measure_spread(vectors: Matrix) -> Spread:
    """Whether the vectors differ: effective rank (Roy and Vetterli 2007) and mean distance."""
    rows = unit_rows(vectors)
    count = len(rows)
    if count < 2:
        return Spread(0.0, 0.0)
    spectrum = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False)
    total = spectrum.sum()
    shares = spectrum / total if total > _TINY * count else np.ones(1)
    shares = shares[shares > 0]
    rank = float(np.exp(-np.sum(shares * np.log(shares))))
    similar_sum = float(np.square(rows.sum(axis=0)).sum()) - float(np.square(rows).sum())
    return Spread(rank, 1.0 - similar_sum / (count * (count - 1)))


def distance_between(first: Matrix, second: Matrix) -> float:
    """The mean cosine distance between rows of the one and rows of the other."""
    return float(1.0 - unit_rows(first).mean(axis=0) @ unit_rows(second).mean(axis=0))


@dataclass(frozen=True, slots=True)
class AffineMap:
    """rows @ weight + bias."""

    weight: Matrix
    bias: Matrix

    def __call__(self, rows: Matrix) -> Matrix:
        return np.asarray(rows @ self.weight + self.bias)


def fit_ridge_map(train_in: Matrix, train_out: Matrix) -> AffineMap:
    """A ridge regression with intercept.

    Its strength is chosen on the training rows alone, by the exact leave-one-out error (Allen's
    PRESS, Technometrics 16, 1974), relative to the largest eigenvalue.
    """
    mean_in, mean_out = train_in.mean(axis=0), train_out.mean(axis=0)
    left, values, right = np.linalg.svd(train_in - mean_in, full_matrices=False)
    target = left.T @ (train_out - mean_out)
    strongest = max(float(values[0]) ** 2, _TINY) if len(values) else _TINY
    strengths = _RIDGES * strongest
    errors = [_left_out_error(left, values, train_out - mean_out, item) for item in strengths]
    best = strengths[int(np.argmin(errors))]
    weights = right.T @ ((values / (values**2 + best))[:, None] * target)
    return AffineMap(np.asarray(weights), np.asarray(mean_out - mean_in @ weights))


def _left_out_error(left: Matrix, values: Matrix, target: Matrix, strength: float) -> float:
    shrunk = values**2 / (values**2 + strength)
    hat = np.sum(left**2 * shrunk, axis=1) + 1 / len(target)
    residual = target - left @ (shrunk[:, None] * (left.T @ target))
    return float(np.mean((residual / np.maximum(1 - hat, 1e-6)[:, None]) ** 2))


def _nearest(vectors: Matrix, neighbours: int) -> npt.NDArray[np.intp]:
    similar = similarities(vectors, vectors)
    np.fill_diagonal(similar, -np.inf)
    kept = min(neighbours, len(vectors) - 1)
    return np.argsort(-similar, axis=1, kind="stable")[:, :kept]


def _ranks(similar: Matrix, upper: tuple[npt.NDArray[np.intp], ...]) -> Matrix:
    """Symmetric, zero on the diagonal, mean rank zero."""
    ranked = rankdata(similar[upper])
    ranks = np.zeros_like(similar)
    ranks[upper] = (ranked - ranked.mean()) / len(ranked)
    return np.asarray(ranks + ranks.T)


def _correlate(counts: Matrix, forms: tuple[Matrix, ...]) -> Matrix:
    """Pearson's correlation under each row of counts, a pair weighing the product of its two."""
    pairs, a, b, aa, bb, ab = (np.sum((counts @ form) * counts, axis=1) for form in forms)
    with np.errstate(invalid="ignore", divide="ignore"):
        a, b = a / pairs, b / pairs
        spread = (aa / pairs - a * a) * (bb / pairs - b * b)
        value = (ab / pairs - a * b) / np.sqrt(np.where(spread > _TINY, spread, np.nan))
    return np.asarray(value)
