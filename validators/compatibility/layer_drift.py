"""How far two versions are apart, layer by layer, from their traces."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from validators.compatibility.alignment import align_layers
from validators.compatibility.layers import LayerDrift, LayerStatistics, Trace

Array = npt.NDArray[Any]

_TINY = 1e-30
_MOST = 1e9
"""Ratios stop here: a layer that was all zeros has no size to compare with."""


def measure_drifts(
    old: Trace,
    new: Trace,
    *,
    old_reference: Trace | None = None,
    new_reference: Trace | None = None,
) -> tuple[LayerDrift, ...]:
    """A drift for each pair of layers that belong together, in the new version's order.

    The references are the same versions in fp32, where the traces are in a half.
    """
    before, after = layers_by_name(old_reference), layers_by_name(new_reference)
    return tuple(
        _drift(
            first, second, (old.sketches[first.order], new.sketches[second.order]),
            (before.get(first.name), after.get(second.name)),
        )
        for first, second in align_layers(old.layers, new.layers)
    )  # fmt: skip


def layers_by_name(trace: Trace | None) -> dict[str, LayerStatistics]:
    """A trace's layers, to find one again in another precision of the same version."""
    return {layer.name: layer for layer in trace.layers} if trace is not None else {}


def _drift(
    old: LayerStatistics,
    new: LayerStatistics,
    sketches: tuple[Array, Array],
    references: tuple[LayerStatistics | None, LayerStatistics | None],
) -> LayerDrift:
    items = min(len(old.item_linf), len(new.item_linf))
    usable = _usable(old, new, items)
    cosine, relative = _compare_sketches(sketches, _same_size(old, new, items) & usable)
    scale = max(float(np.sqrt(old.variance)), _TINY)
    return LayerDrift(
        old.name, new.name, new.kind, new.order, new.key, new.output,
        _linf_drift(old, new, usable),
        min(abs(new.mean - old.mean) / scale, _MOST),
        min(abs(new.variance - old.variance) / max(old.variance, _TINY), _MOST),
        cosine, relative,
        old.broken_items(references[0]) / max(len(old.item_linf), 1),
        new.broken_items(references[1]) / max(len(new.item_linf), 1),
    )  # fmt: skip


def _usable(old: LayerStatistics, new: LayerStatistics, items: int) -> Array:
    """Items for which both layers ran without a NaN or an infinity."""
    ran = (np.array(old.item_size[:items]) > 0) & (np.array(new.item_size[:items]) > 0)
    broken = np.array(old.item_broken[:items]) + np.array(new.item_broken[:items])
    usable: Array = ran & (broken == 0)
    return usable


def _same_size(old: LayerStatistics, new: LayerStatistics, items: int) -> Array:
    same: Array = np.array(old.item_size[:items]) == np.array(new.item_size[:items])
    return same


def _linf_drift(old: LayerStatistics, new: LayerStatistics, usable: Array) -> float | None:
    items = len(usable)
    before, after = np.array(old.item_linf[:items]), np.array(new.item_linf[:items])
    chosen = usable & (before > 0)
    if not chosen.any():
        return None
    drift = np.abs(after[chosen] - before[chosen]) / before[chosen]
    return float(min(drift.mean(), _MOST))


def _compare_sketches(
    sketches: tuple[Array, Array], chosen: Array
) -> tuple[float | None, float | None]:
    """Mean cosine over items, and the size of all differences over that of all old tensors."""
    old, new = (side[: len(chosen)][chosen].astype(np.float64) for side in sketches)
    if not len(old):
        return None, None
    sizes = np.linalg.norm(old, axis=1), np.linalg.norm(new, axis=1)
    product = sizes[0] * sizes[1]
    both_zero = (sizes[0] == 0) & (sizes[1] == 0)
    dots = np.sum(old * new, axis=1)
    cosines = np.where(both_zero, 1.0, dots / np.where(product > 0, product, 1.0))
    gap, whole = float(np.linalg.norm(new - old)), float(np.linalg.norm(old))
    relative = 0.0 if gap == 0 else min(gap / max(whole, _TINY), _MOST)
    return float(np.clip(cosines, -1, 1).mean()), relative
