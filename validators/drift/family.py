"""Many permutation tests on the same memberships, with one false-alarm rate over all of them.

Step-down max-T (Westfall and Young, 1993): every statistic is brought to a common scale by the tail
of a gamma distribution fitted to its own permutations, and the largest one of each permutation is
what an observed one has to beat. The fit only weighs statistics against each other; the rate holds
whether it is good or not, because the observed labelling is one of those it was fitted on. Features
that say the same thing cost one test, not many, which no bound on sums of p-values (Bonferroni,
Benjamini and Yekutieli) can give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]

_TOLERANCE = 1e-4
"""Labellings that tie, but for rounding of their statistics, count as reaching each other."""


@dataclass(frozen=True, slots=True)
class Tested:
    """`p_value` of one subject alone, `adjusted` under control of all."""

    p_value: float
    adjusted: float


def tail_scores(statistics: npt.ArrayLike) -> Floats:
    """[k]: minus the logarithm of the upper tail, by a gamma with these three moments.

    By the cube root that makes a gamma variate normal (Wilson and Hilferty, 1931). 0
    throughout where the statistic never varies.
    """
    values = np.asarray(statistics, np.float64)
    spread = float(values.std())
    if spread <= 1e-6 * max(1e-12, float(np.abs(values).max())):
        return np.zeros(len(values))
    standard = (values - values.mean()) / spread
    skew = max(float(np.mean(standard**3)), 0.05)
    shape = 4 / skew**2
    ratio = np.maximum(1 + standard / np.sqrt(shape), 0)  # gamma variate over its mean
    normal = (np.cbrt(ratio) - 1 + 1 / (9 * shape)) * 3 * np.sqrt(shape)
    scores: Floats = -special.log_ndtr(-normal)
    return scores


def judge_family(scores: Sequence[Floats]) -> list[Tested]:
    """Of scores by subject, each [k] with the observed one first.

    A p-value is the share of labellings, the observed one among them, that do at least as well
    (Phipson and Smyth, 2010): it is never 0 and its rate is exact.
    """
    if not scores:
        return []
    table = np.stack(scores)  # [subjects, k]
    alone = _shares(table, table[:, 0])
    order = np.argsort(-table[:, 0], kind="stable")
    best = np.maximum.accumulate(table[order][::-1], axis=0)[::-1]
    stepped = np.maximum.accumulate(_shares(best, table[order, 0]))
    adjusted = np.empty(len(order))
    adjusted[order] = stepped
    return [Tested(float(p), float(a)) for p, a in zip(alone, adjusted, strict=True)]


def permutations_for(rate: float) -> int:
    """Enough labellings for the least p-value to lie at a third of the rate."""
    return max(399, int(np.ceil(3 / rate)) - 1)


def _shares(table: Floats, observed: Floats) -> Floats:
    reached = table >= (observed - _TOLERANCE * np.maximum(np.abs(observed), 1))[:, None]
    shares: Floats = reached.mean(axis=1)
    return shares
