"""Two categorical distributions held against each other: how far apart, and by chance or not.

The effect is the total variation distance (the share of samples that would need another value)
beyond what two samples of these sizes differ by alone: small samples of many values always differ.
The p-value is of Pearson's statistic: by permutation of the pooled sample where that is small (a
2 x C table with fixed margins, drawn from the multivariate hypergeometric distribution), by the
chi-square distribution where it is large and no cell expects fewer than five (Cochran, 1954).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from validators.lineage.counts import Counts

EXACT_SAMPLES = 50_000
"""Pooled samples up to which the null is drawn."""

RARE = 5
"""Values that fewer of the pooled samples have are judged together: alone they decide nothing."""

_EXPECTED = 5.0
_CHUNK_CELLS = 1_000_000

Table = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Divergence:
    """How two distributions differ. `effect` is beyond chance, `distance` is what was seen."""

    effect: float
    distance: float
    p_value: float


def diverge(training: Counts, serving: Counts, *, permutations: int, seed: int) -> Divergence:
    """Compare the distributions of one category; both sides have samples and no `rest`."""
    table = table_of(training, serving)
    sizes = table.sum(axis=1)
    distance = _total_variation(table, sizes)
    effect = max(distance - _by_chance(table, sizes), 0.0)
    return Divergence(effect, distance, _p_value(_pool_rare(table), permutations, seed))


def table_of(training: Counts, serving: Counts) -> Table:
    """Counts [2, C] over the values of either."""
    values = sorted(training.known | serving.known)
    rows = []
    for side in (training, serving):
        counted = {item.value: item.samples for item in side.values}
        rows.append([counted.get(value, 0) for value in values])
    return np.array(rows, dtype=np.int64).reshape(2, len(values))


def _total_variation(table: Table, sizes: Table) -> float:
    shares = table / sizes[:, None]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _by_chance(table: Table, sizes: Table) -> float:
    """The expected distance of two samples of one distribution, the pooled one (normal means)."""
    pooled = table.sum(axis=0) / sizes.sum()
    spread = np.sqrt(pooled * (1 - pooled) * (1 / sizes).sum())
    return float(math.sqrt(2 / math.pi) * spread.sum() / 2)


def _pool_rare(table: Table) -> Table:
    """The table with its rare values as one column. Blind to the sides, so the null still holds."""
    rare = table.sum(axis=0) < RARE
    if rare.sum() < 2:
        return table
    together = table[:, rare].sum(axis=1, keepdims=True)
    return np.concatenate([table[:, ~rare], together], axis=1)


def _p_value(table: Table, permutations: int, seed: int) -> float:
    if table.shape[1] < 2:
        return 1.0
    totals, sizes = table.sum(axis=0), table.sum(axis=1)
    expected = np.outer(sizes, totals) / sizes.sum()
    observed = float(_pearson(table[:1], expected)[0])
    if sizes.sum() > EXACT_SAMPLES and expected.min() >= _EXPECTED:
        return float(stats.chi2.sf(observed, table.shape[1] - 1))
    limit = observed - 1e-9 * max(observed, 1.0)
    exceeded = sum(
        int(np.count_nonzero(_pearson(rows, expected) >= limit))
        for rows in _drawn(table, permutations, seed)
    )
    return (1 + exceeded) / (1 + permutations)


def _drawn(table: Table, count: int, seed: int) -> Iterator[Table]:
    """First rows of tables with these margins, as if the sides had been drawn by lot."""
    generator = np.random.default_rng(seed)
    totals, first = table.sum(axis=0), int(table[0].sum())
    at_once = max(1, _CHUNK_CELLS // len(totals))
    for done in range(0, count, at_once):
        rows = min(at_once, count - done)
        yield generator.multivariate_hypergeometric(totals, first, size=rows, method="marginals")


def _pearson(
    first_rows: npt.NDArray[Any], expected: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Pearson's statistic of 2 x C tables by their first rows: the margins give the second."""
    squared = (first_rows - expected[0]) ** 2
    statistic: npt.NDArray[np.float64] = (squared * (1 / expected[0] + 1 / expected[1])).sum(axis=1)
    return statistic
