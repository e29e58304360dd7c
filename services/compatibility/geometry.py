"""Two clouds of vectors over the same items: how alike they are, raw and through a learned map.

All functions take finite [N, D] arrays, row i of both being item i.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from validators.compatibility.measured import Spread

Matrix = npt.NDArray[np.float64]

NEIGHBOURS = 10
_RIDGES = np.logspace(-4, 2, 13)
_TINY = 1e-12


def unit_rows(vectors: npt.NDArray[np.generic]) -> Matrix:
    """The rows at length one; a row of zeros stays."""
    rows = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, _TINY))


def paired_cosines(first: Matrix, second: Matrix) -> Matrix:
    """The cosine of each row pair, [N]."""
    return np.asarray(np.sum(unit_rows(first) * unit_rows(second), axis=1))


def count_found(queries: Matrix, index: Matrix) -> int:
    """How many queries have their own item as strictly nearest; a tie is not found."""
    similar = unit_rows(queries) @ unit_rows(index).T
    own = np.diagonal(similar).copy()
    np.fill_diagonal(similar, -np.inf)
    return int(np.sum(own > similar.max(axis=1, initial=-np.inf)))


def neighbours_of(count: int) -> int:
    """How many neighbours are compared among so many items: at most a third of the others."""
    return max(1, min(NEIGHBOURS, (count - 1) // 3))


def neighbour_overlap(first: Matrix, second: Matrix, neighbours: int) -> float:
    """The mean share of each item's nearest items that both spaces agree on."""
    if len(first) < 2:
        return 0.0
    here, there = _nearest(first, neighbours), _nearest(second, neighbours)
    shared = [len(set(a) & set(b)) for a, b in zip(here.tolist(), there.tolist(), strict=True)]
    return float(np.mean(shared) / here.shape[1])


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


def map_by_ridge(train_in: Matrix, train_out: Matrix, test_in: Matrix) -> Matrix:
    """The test rows through a ridge regression with intercept, fitted on the training rows.

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
    return np.asarray((test_in - mean_in) @ weights + mean_out)


def _left_out_error(left: Matrix, values: Matrix, target: Matrix, strength: float) -> float:
    shrunk = values**2 / (values**2 + strength)
    hat = np.sum(left**2 * shrunk, axis=1) + 1 / len(target)
    residual = target - left @ (shrunk[:, None] * (left.T @ target))
    return float(np.mean((residual / np.maximum(1 - hat, 1e-6)[:, None]) ** 2))


def _nearest(vectors: Matrix, neighbours: int) -> npt.NDArray[np.intp]:
    rows = unit_rows(vectors)
    similar = rows @ rows.T
    np.fill_diagonal(similar, -np.inf)
    kept = min(neighbours, len(rows) - 1)
    return np.argsort(-similar, axis=1, kind="stable")[:, :kept]
