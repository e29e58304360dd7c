"""Columns of two windows as row features: what is compared is always a difference of means.

The mean of "lies below this edge" is a distribution function, the mean of "is of this category" a
share, the mean of a kernel's features an embedding of the whole distribution. So one matrix product
of memberships and features gives the statistics of all permutations, whatever kind a column is of.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import special

from validators.drift.columns import ABSENT, Bools, Categories, Scalars, joined_vocabulary
from validators.drift.labelling import Ints
from validators.drift.settings import Kind

Floats = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float32]

MAX_EDGES = 64
RARE = 5
"""Categories with fewer rows in both windows together are one."""


@dataclass(frozen=True, slots=True)
class Block:
    """Features [n, q] of the pooled rows for one subject, 0 where `present` [n] is False.

    `form` says how a difference of means becomes statistics: "steps" (of a distribution),
    "shares" (of categories), "means", or "misfits": the misfit of each pair, and that of its first
    item with a stranger.
    """

    subject: str
    kind: Kind
    form: str
    features: Matrix
    present: Bools
    words: tuple[str, ...] = ()

    def take(self, rows: Ints) -> Block:
        return replace(self, features=self.features[rows], present=self.present[rows])

    @property
    def constant(self) -> bool:
        """One value in every row: nothing to test, and no part of the false-alarm rate."""
        there = self.features[self.present]
        return len(there) == 0 or bool((there == there[0]).all())


@dataclass(frozen=True, slots=True)
class Measured:
    """`statistics` [s, k] by labelling, the observed one first, and the observed `effect`.

    A block that only adds power to another one of its subject has effect 0.
    """

    statistics: Matrix
    effect: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


def scalar_block(subject: str, reference: Scalars, current: Scalars) -> Block:
    """A distribution by at most MAX_EDGES steps at quantiles of the pooled values."""
    values = np.concatenate([reference.values, current.values])
    present = np.concatenate([reference.present, current.present])
    return steps_block(subject, Kind.SCALAR, values, present)


def steps_block(subject: str, kind: Kind, values: Floats, present: Bools) -> Block:
    distinct = np.unique(values[present])
    if len(distinct) > MAX_EDGES:
        quantiles = np.linspace(0, 1, MAX_EDGES + 1)[1:]
        distinct = np.unique(np.quantile(values[present], quantiles, method="inverted_cdf"))
    places = np.searchsorted(distinct, values)
    features = np.zeros((len(values), max(len(distinct), 1)), np.float32)
    features[np.flatnonzero(present), places[present]] = 1
    return Block(subject, kind, "steps", features, present)


def category_block(subject: str, reference: Categories, current: Categories) -> Block:
    """Shares of the categories of both windows; those with hardly any rows are one."""
    words = joined_vocabulary((reference, current))
    codes = np.concatenate([reference.recoded(words), current.recoded(words)])
    present = codes != ABSENT
    counts = np.bincount(codes[present], minlength=len(words))
    rare = counts < RARE
    column = np.where(rare, 0, np.cumsum(~rare) - 1 + int(rare.any()))
    features = np.zeros((len(codes), int(column.max(initial=0)) + 1), np.float32)
    features[np.flatnonzero(present), column[codes[present]]] = 1
    kept = tuple(word for word, few in zip(words, rare, strict=True) if not few)
    names = ("(rare)", *kept) if rare.any() else kept
    return Block(subject, Kind.CATEGORY, "shares", features, present, names)


def absence_block(subject: str, present: Bools) -> Block:
    """Whether a column has a value at all."""
    features = present[:, None].astype(np.float32)
    return Block(subject, Kind.ABSENCE, "means", features, np.ones(len(present), np.bool_))


def differences(block: Block, memberships: Matrix) -> Matrix:
    """[k, q]: the mean of the current window minus that of the reference, by labelling [k, n]."""
    there = block.present.astype(np.float32)
    inside = memberships @ there
    outside = np.maximum(np.float32(there.sum()) - inside, 1)[:, None]
    moved = memberships @ block.features
    moved *= 1 / np.maximum(inside, 1)[:, None] + 1 / outside
    moved -= block.features.sum(axis=0, dtype=np.float64).astype(np.float32) / outside
    return moved


def measure(block: Block, memberships: Matrix) -> Measured:
    """Statistics of every labelling, and the effect of the observed one."""
    moved = differences(block, memberships)
    pooled = block.features[block.present].mean(axis=0, dtype=np.float64)
    if block.form == "steps":
        found = _steps(moved, pooled)
        return replace(found, effect=0.0) if block.kind is Kind.PAIRS else found
    if block.form == "shares":
        return _shares(moved, pooled)
    if block.form == "misfits":
        share = estimate_misfits(block, memberships[0] > 0)
        return Measured(moved[None, :, 0] ** 2, share.value)
    return _means(block, moved)


def _steps(moved: Matrix, pooled: Floats) -> Measured:
    """Kolmogorov-Smirnov and Anderson-Darling: the middle and the tails."""
    steps, level = np.cumsum(moved, axis=1), np.cumsum(pooled)
    largest = np.abs(steps).max(axis=1)
    weight = (pooled / np.maximum(level * (1 - level), 1e-3)).astype(np.float32)
    return Measured(np.stack([largest, steps**2 @ weight]), float(largest[0]))


def _shares(moved: Matrix, pooled: Floats) -> Measured:
    """Total variation and chi-square: common and rare categories."""
    variation = np.abs(moved).sum(axis=1) / 2
    chance = float(variation[1:].mean()) if len(variation) > 1 else 0.0
    chi_square = moved**2 @ (1 / np.maximum(pooled, 1e-9))
    return Measured(np.stack([variation, chi_square]), max(float(variation[0]) - chance, 0.0))


def estimate_misfits(block: Block, current: npt.NDArray[np.bool_]) -> Estimate:
    """The share of the current pairs that no longer belong together, beyond the reference's.

    Misfits of the current window are a mixture of the reference's pairs and of its items with
    strangers; the share is where the mean lies between the two, its interval by the delta method.
    """
    scores = block.features.astype(np.float64)
    known, strangers = scores[block.present & ~current].T
    now = scores[block.present & current, 0]
    gap = float(strangers.mean() - known.mean()) if len(known) else 0.0
    if gap <= 1e-9 or min(len(known), len(now)) < 2:
        return Estimate(0.0, 0.0, 1.0)
    share = float(now.mean() - known.mean()) / gap
    variance = (
        now.var() / len(now)
        + (1 - share) ** 2 * known.var() / len(known)
        + share**2 * strangers.var() / len(known)
    )
    error = 1.96 * float(np.sqrt(variance)) / gap
    low, value, high = np.clip([share - error, share, share + error], 0, 1)
    return Estimate(float(value), float(low), float(high))


def _means(block: Block, moved: Matrix) -> Measured:
    squared = np.einsum("kq,kq->k", moved, moved)
    if block.kind is Kind.PAIRS:
        return Measured(squared[None, :], 0.0)
    if block.kind is Kind.ABSENCE:
        return Measured(squared[None, :], float(np.sqrt(squared[0])))
    return Measured(squared[None, :], _separation(block, moved, squared))


def _separation(block: Block, moved: Matrix, squared: Matrix) -> float:
    """How much better than chance the direction of the difference tells the windows apart.

    The distance of the two means along it, in units of the spread along it, both without what
    chance alone adds, and from that 2 Phi(d / 2) - 1: the total variation of two normal
    distributions at that distance.
    """
    there = block.features[block.present].astype(np.float64)
    spread = np.cov(there, rowvar=False, bias=True).reshape(there.shape[1], -1)
    few = moved[: min(len(moved), 201)]
    along = np.einsum("kq,qr,kr->k", few, spread, few, optimize=True)
    distance = max(float(squared[0] - squared[1:].mean()), 0.0)
    width = max(float(along[0] - along[1:].mean()), 0.1 * float(along[0]), 1e-30)
    return float(2 * special.ndtr(distance / np.sqrt(width) / 2) - 1)
