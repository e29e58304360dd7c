"""Do the modalities of a row still belong together, though each alone looks as it always did?

Every pair gets a score of how much better its two vectors fit each other than those of strangers:
the log-likelihood ratio of dependence against independence in a Gaussian model of canonical
correlation. It is fitted on the pairs of *both* windows, without looking at which one a pair is
from, and each pair is scored by a fit that did not see it: so scores are exchangeable under
"nothing has changed" and a permutation of pairs between the windows is an exact test (a model
fitted on the reference alone would flatter it). No common space is needed; where there is one, the
cosine of the two vectors, in units of the cosines with strangers, is a second score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from validators.drift.blocks import Block, steps_block
from validators.drift.columns import Embedded
from validators.drift.detectors import Matrix, centred, principal
from validators.drift.labelling import Ints
from validators.drift.settings import Kind

Floats = npt.NDArray[np.float64]

FOLDS = 5
MAX_RANK = 24
STRANGERS = 256


@dataclass(frozen=True, slots=True)
class PairScores:
    """Of pooled rows `rows` that have both modalities.

    `misfit` [n] is the probability that the pair was not made together, at even odds; `strangers`
    [n] that of the same item with another row's partner. `cosine` [n] where they share a space.
    """

    rows: Ints
    misfit: Floats
    strangers: Floats
    cosine: Floats | None

    @property
    def related(self) -> bool:
        """Whether the two modalities tell anything of each other: else nothing can be lost."""
        gap = self.strangers - self.misfit
        error = float(gap.std()) / max(len(gap), 1) ** 0.5
        return bool(gap.mean() > max(4 * error, 0.02))


def common_rows(one: Embedded, other: Embedded) -> tuple[Ints, Ints, Ints]:
    """The rows that have both, and their places in either column."""
    rows, first, second = np.intersect1d(
        one.rows, other.rows, assume_unique=True, return_indices=True
    )
    return rows, first, second


def score_pairs(
    one: Matrix, other: Matrix, rows: Ints, units: Ints, *, edge: int, shared: bool, seed: int
) -> PairScores:
    """Scores of pairs (one[i], other[i]) [n] of the pooled `rows`, the current ones from `edge` on.

    Rows of one unit are never on both sides of a fit. `shared`: the vectors are in one space.
    """
    rank = max(1, min(MAX_RANK, len(one) // 20))
    left, right = (_whitened(item, rank, seed) for item in (one, other))
    fold = np.random.default_rng(seed).permutation(int(units.max()) + 1)[units] % FOLDS
    window = rows >= edge
    misfit, strangers = np.empty(len(one)), np.empty(len(one))
    for part in range(FOLDS):
        inside = fold == part
        model = _fit(left[~inside], right[~inside])
        for side in (False, True):
            chosen = np.flatnonzero(inside & (window == side))
            misfit[chosen] = _misfit(left[chosen], right[chosen], model)
            apart = np.roll(chosen, len(chosen) // 2)  # neighbours in time are no strangers
            strangers[chosen] = _misfit(left[chosen], right[apart], model)
    cosine = _cosines(one, other, seed) if shared else None
    return PairScores(rows, misfit, strangers, cosine)


def pair_blocks(subject: str, scores: PairScores, size: int) -> list[Block]:
    """The scores as blocks of `size` pooled rows."""
    present = np.zeros(size, np.bool_)
    present[scores.rows] = True

    def spread_out(values: Floats) -> Floats:
        whole = np.zeros(size)
        whole[scores.rows] = values
        return whole

    both = np.stack([spread_out(scores.misfit), spread_out(scores.strangers)], axis=1)
    blocks = [
        Block(subject, Kind.PAIRS, "misfits", both.astype(np.float32), present),
        steps_block(subject, Kind.PAIRS, spread_out(scores.misfit), present),
    ]
    if scores.cosine is not None:
        bounded = np.arctan(scores.cosine)
        flat = spread_out(bounded - bounded.mean())[:, None].astype(np.float32)
        blocks.append(Block(subject, Kind.PAIRS, "means", flat, present))
    return blocks


def _whitened(vectors: Matrix, rank: int, seed: int) -> Floats:
    scores, variances = principal(vectors, rank, seed)
    kept = variances > 1e-9 * max(float(variances[0]), 1e-30) if len(variances) else variances > 0
    unit: Floats = (scores[:, kept] / np.sqrt(variances[kept])).astype(np.float64)
    return unit


def _fit(left: Floats, right: Floats) -> tuple[Floats, Floats, Floats]:
    """Directions and canonical correlations, less what chance correlates in so many pairs."""
    one, correlations, other = np.linalg.svd(left.T @ right / max(len(left), 1))
    chance = np.sqrt(left.shape[1] / max(len(left), 1)) / 2
    kept = min(left.shape[1], right.shape[1])
    return one[:, :kept], np.clip(correlations - chance, 0, 0.99), other[:kept].T


def _misfit(left: Floats, right: Floats, model: tuple[Floats, Floats, Floats]) -> Floats:
    one, strength, other = model
    u, v = left @ one, right @ other
    square = strength**2
    ratio = (strength * u * v - square * (u**2 + v**2) / 2) / (1 - square)
    fits = (ratio - np.log1p(-square) / 2).sum(axis=1)
    misfit: Floats = 1 / (1 + np.exp(np.clip(fits, -50, 50)))
    return misfit


def _cosines(one: Matrix, other: Matrix, seed: int) -> Floats:
    """Cosines of pairs in units of the spread of cosines with strangers, from both sides."""
    left, right = _unit(centred(one)), _unit(centred(other))
    picked = np.random.default_rng(seed).permutation(len(left))[:STRANGERS]
    pairs = np.sum(left * right, axis=1)
    scores = np.zeros(len(left))
    for cosines in (left @ right[picked].T, right @ left[picked].T):
        scores += (pairs - cosines.mean(axis=1)) / np.maximum(cosines.std(axis=1), 1e-6)
    return scores


def _unit(vectors: Matrix) -> Matrix:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)
