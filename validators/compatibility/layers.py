"""What was seen inside an encoder, layer by layer, and how far two versions are apart there.

Values only, no model. A layer is a tensor that the encoder computes on its way: the output of a
torch module, of an ONNX node, of an operation of a compiled graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from validators.contracts.engine import Precision

MASK = -1e8
"""At or below this a number is a mask, not an activation: masks are written -1e9, -3.4e38 or -inf,
and they turn into -inf in half precision without harm."""


@dataclass(frozen=True, slots=True)
class LayerStatistics:
    """One tensor over all items.

    Masked elements (at or below MASK, negative infinity included) are counted and kept out of every
    figure; so are NaN and positive infinity, `nan` and `inf`. `linf` is the largest absolute value
    that remains. `item_*` have an entry per item: `item_broken` counts NaN and positive infinities,
    `item_norm` is the Euclidean norm, `item_size` 0 where the layer did not run for that item.
    `key`: the output of a block or of a normalisation, or an output of the encoder itself.
    """

    name: str
    kind: str  # "LayerNorm", "MatMul", "Conv2d": as its runtime calls it
    order: int  # by first execution, from 0: the layer's row in `Trace.sketches`
    key: bool
    output: bool
    size: int  # elements over all items
    linf: float
    mean: float
    variance: float
    nan: int
    inf: int
    masked: int
    item_linf: tuple[float, ...]
    item_norm: tuple[float, ...]
    item_size: tuple[int, ...]
    item_broken: tuple[int, ...]
    item_masked: tuple[int, ...]

    def broken_places(self, reference: LayerStatistics | None = None) -> tuple[int, ...]:
        """Items with a NaN or an infinity that no mask explains.

        A masked element is excused where the `reference`, the same layer in fp32, has as many: more
        of them in half precision are overflows. Without a reference all are excused.
        """
        known = reference.item_masked if reference is not None else self.item_masked
        pairs = zip(self.item_broken, self.item_masked, known, strict=True)
        return tuple(
            item for item, (broken, masked, usual) in enumerate(pairs) if broken or masked > usual
        )

    def broken_items(self, reference: LayerStatistics | None = None) -> int:
        """How many there are of them."""
        return len(self.broken_places(reference))


def _no_sketches() -> npt.NDArray[Any]:
    return np.zeros((0, 0, 0), np.float32)


@dataclass(frozen=True, slots=True)
class Trace:
    """One version on one runtime in one precision.

    `computed_in` is what the arithmetic really was; ONNX Runtime on a CPU, asked for fp16, computes
    in fp32. `sketches` [layers, items, numbers] are seeded random projections of each tensor, the
    same for every trace of a run: their inner products estimate those of the tensors (Johnson and
    Lindenstrauss 1984; signs as in Achlioptas 2003). `note` says why a trace has no layers.
    """

    runtime: str  # "torch", "onnxruntime", "openvino", "engine openvino"
    precision: Precision
    computed_in: Precision | None
    items: int
    layers: tuple[LayerStatistics, ...]
    note: str = ""
    wall_s: float = 0.0
    sketches: npt.NDArray[Any] = field(default_factory=_no_sketches, compare=False, repr=False)

    @property
    def genuine(self) -> bool:
        """Whether NaN and infinity seen, or not seen, here say anything about the precision."""
        return self.computed_in is self.precision

    @property
    def ran(self) -> bool:
        return bool(self.layers)


@dataclass(frozen=True, slots=True)
class LayerDrift:
    """One layer of the old version beside its partner of the new one.

    `linf` is the mean over items of | |new| - |old| | / |old|, `mean` is the shift in standard
    deviations of the old, `variance` the relative change. `cosine` and `relative` (the norm of the
    difference over the norm of the old) come from the sketches, over items of equal size; None
    where there are none. `broken_*` are shares of items with NaN or infinity.
    """

    old: str
    new: str
    kind: str
    order: int  # in the new version's execution
    key: bool
    output: bool
    linf: float | None
    mean: float
    variance: float
    cosine: float | None
    relative: float | None
    broken_old: float
    broken_new: float


@dataclass(frozen=True, slots=True)
class DriftLimits:
    """How far a layer may move before the versions are said to part there."""

    relative: float = 0.03
    cosine: float = 0.999
    linf: float = 0.03


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first layer beyond the limits, and the last before it that was within them."""

    first: LayerDrift
    last_agreeing: LayerDrift | None


def is_beyond(drift: LayerDrift, limits: DriftLimits) -> bool:
    """Whether the versions part at this layer: by the tensor where it is comparable, else by L∞."""
    if drift.broken_new > drift.broken_old:
        return True
    if drift.relative is not None and drift.cosine is not None:
        return drift.relative > limits.relative or drift.cosine < limits.cosine
    return drift.linf is not None and drift.linf > limits.linf


def first_divergence(drifts: Sequence[LayerDrift], limits: DriftLimits) -> Divergence | None:
    """Where the versions part, in the order of execution; None where they do not."""
    agreeing: LayerDrift | None = None
    for drift in sorted(drifts, key=lambda item: item.order):
        if is_beyond(drift, limits):
            return Divergence(drift, agreeing)
        agreeing = drift
    return None
