"""Two windows without any single request's figures, for pictures that are kept.

Evidently stores what it plots, and plots a short window value by value. So each value is replaced
by the mean of its neighbours in the pooled sample (microaggregation; Domingo-Ferrer and
Mateo-Sanz, 2002), and each column is put into an order of its own: distributions stay, rows do not.
Pure.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from validators.drift.columns import Scalars
from validators.drift.window import DriftWindow

GROUP = 5
"""So many values at least are averaged."""

MAX_LEVELS = 64


def blurred(
    reference: DriftWindow, live: DriftWindow, seed: int = 0
) -> tuple[DriftWindow, DriftWindow]:
    """Both windows with blurred descriptors; columns that only one of them has are left out."""
    chance = np.random.default_rng(seed)
    before, now = dict[str, Scalars](), dict[str, Scalars]()
    for name in sorted({*reference.descriptors} & {*live.descriptors}):
        one, other = reference.descriptors[name], live.descriptors[name]
        pooled = _averaged(np.concatenate([one.observed(), other.observed()]))
        split = int(one.present.sum())
        before[name] = _column(pooled[:split], reference.rows, chance)
        now[name] = _column(pooled[split:], live.rows, chance)
    return replace(reference, descriptors=before), replace(live, descriptors=now)


def _averaged(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Each value as the mean of its group, the groups being neighbours in size."""
    levels = max(1, min(MAX_LEVELS, len(values) // GROUP))
    order = np.argsort(values, kind="stable")
    averaged = np.empty_like(values)
    for group in np.array_split(order, levels):
        if len(group):
            averaged[group] = values[group].mean()
    return averaged


def _column(values: npt.NDArray[np.float64], rows: int, chance: np.random.Generator) -> Scalars:
    spread = np.full(rows, np.nan)
    spread[chance.permutation(rows)[: len(values)]] = values
    return Scalars.of(spread)
