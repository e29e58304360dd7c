"""Gathers statistics of layers while the items run; of a tensor nothing is kept but figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from services.compatibility.traces.sketch import SKETCH, sketch_of
from validators.compatibility.layers import MASK, LayerStatistics
from validators.contracts.errors import TooLarge

Array = npt.NDArray[Any]

MAX_LAYERS = 4096
"""Of one trace: memory is bounded by layers x items x (SKETCH + 5) numbers."""


@dataclass(slots=True)
class _Layer:
    """Running sums of one layer; moments are merged item by item (Chan, Golub, LeVeque 1979)."""

    name: str
    kind: str
    key: bool
    output: bool
    count: int = 0
    size: int = 0
    mean: float = 0.0
    squares: float = 0.0  # sum of squared distances from the mean
    nan: int = 0
    inf: int = 0
    masked: int = 0
    rows: dict[int, tuple[float, float, int, int, int]] = field(default_factory=dict)
    sketches: dict[int, Array] = field(default_factory=dict)

    def add(self, item: int, values: Array) -> None:
        nan = inf = masked = 0
        size = values.size
        low, high = (float(values.min()), float(values.max())) if size else (0.0, 0.0)
        if not (low > MASK and np.isfinite(high)):  # a NaN makes both ends NaN
            values, nan, inf, masked = _without_faults(values)
            low, high = float(values.min()), float(values.max())
        valid = size - nan - inf - masked
        mean, squares = _moments(values, valid)
        self._merge(valid, mean, squares)
        self.size, self.nan = self.size + size, self.nan + nan
        self.inf, self.masked = self.inf + inf, self.masked + masked
        norm = float(np.sqrt(squares + valid * mean * mean))
        self.rows[item] = (max(-low, high, 0.0), norm, size, nan + inf, masked)
        self.sketches[item] = sketch_of(values)

    def _merge(self, count: int, mean: float, squares: float) -> None:
        total = self.count + count
        if total:
            gap = mean - self.mean
            self.squares += squares + gap * gap * self.count * count / total
            self.mean += gap * count / total
            self.count = total

    def finish(self, order: int, items: int) -> LayerStatistics:
        rows = [self.rows.get(item, (0.0, 0.0, 0, 0, 0)) for item in range(items)]
        linf, norm, size, broken, masked = zip(*rows, strict=True) if rows else ((),) * 5
        return LayerStatistics(
            self.name, self.kind, order, self.key, self.output, self.size,
            max(linf, default=0.0), self.mean, self.squares / max(self.count, 1),
            self.nan, self.inf, self.masked,
            tuple(linf), tuple(norm), tuple(size), tuple(broken), tuple(masked),
        )  # fmt: skip


class Recorder:
    """Layers in the order in which they first ran."""

    def __init__(self) -> None:
        self._layers: dict[str, _Layer] = {}
        self._items = 0

    def add(
        self, item: int, name: str, kind: str, values: Array, *, key: bool = False,
        output: bool = False,
    ) -> None:  # fmt: skip
        """Take in a float tensor of one item.

        Raises:
            TooLarge: more than MAX_LAYERS layers.
        """
        layer = self._layers.get(name)
        if layer is None:
            if len(self._layers) >= MAX_LAYERS:
                raise TooLarge(
                    f"the encoder has more than {MAX_LAYERS} layers", where=name,
                    remedy="Trace a part of it.",
                )  # fmt: skip
            layer = self._layers[name] = _Layer(name, kind, key or output, output)
        self._items = max(self._items, item + 1)
        layer.add(item, _as_float32(values))

    def finish(
        self, order: Iterable[str] | None = None
    ) -> tuple[tuple[LayerStatistics, ...], Array]:
        """The layers and their sketches [layers, items, SKETCH], in the order given or seen."""
        names = [name for name in order if name in self._layers] if order else list(self._layers)
        kept = [self._layers[name] for name in names]
        sketches = np.zeros((len(kept), self._items, SKETCH), np.float32)
        for row, layer in enumerate(kept):
            for item, numbers in layer.sketches.items():
                sketches[row, item] = numbers
        layers = tuple(layer.finish(row, self._items) for row, layer in enumerate(kept))
        return layers, sketches


def _as_float32(values: Array) -> Array:
    flat = np.ascontiguousarray(values).reshape(-1)
    if flat.dtype == np.float32:
        return flat
    with np.errstate(over="ignore"):  # a double beyond fp32 is an infinity to it
        return flat.astype(np.float32)


def _without_faults(values: Array) -> tuple[Array, int, int, int]:
    """Zeros in the place of NaN, +inf and masks, and how many there were of each."""
    nan, inf, masked = np.isnan(values), np.isposinf(values), values <= MASK
    cleaned = np.where(nan | inf | masked, np.float32(0), values)
    return cleaned, int(nan.sum()), int(inf.sum()), int(masked.sum())


def _moments(values: Array, valid: int) -> tuple[float, float]:
    """Mean of the valid elements and their squared distances from it; the others are zeros."""
    if valid == 0:
        return 0.0, 0.0
    mean = float(values.sum(dtype=np.float64)) / valid
    centred = values - np.float32(mean)
    peak = max(float(centred.max()), -float(centred.min()))
    wide = centred.astype(np.float64) if peak > 1e15 else centred
    squares = float(np.dot(wide, wide)) - (values.size - valid) * mean * mean
    return mean, max(squares, 0.0)
