"""Layers and traces as values, for tests of what is decided about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from validators.compatibility.layers import LayerStatistics, Trace
from validators.compatibility.sandboxed import ExaminedVersion, SandboxMeasurement
from validators.contracts.engine import Precision

ITEMS = 4


def layer(name: str, kind: str = "Linear", **changes: object) -> LayerStatistics:
    made = LayerStatistics(
        name, kind, 0, False, False, 16 * ITEMS, 2.0, 0.0, 1.0, 0, 0, 0,
        (2.0,) * ITEMS, (4.0,) * ITEMS, (16,) * ITEMS, (0,) * ITEMS, (0,) * ITEMS,
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def trace(
    layers: Sequence[LayerStatistics],
    precision: Precision = Precision.FP32,
    *,
    runtime: str = "torch",
    computed_in: Precision | None = None,
    turned: Sequence[str] = (),
) -> Trace:
    """Sketches are alike for every layer but those in `turned`."""
    placed = tuple(replace(item, order=place) for place, item in enumerate(layers))
    sketches = np.ones((len(placed), ITEMS, 8), np.float32)
    for place, item in enumerate(placed):
        if item.name in turned:
            sketches[place, :, ::2] = -1
    return Trace(runtime, precision, computed_in or precision, ITEMS, placed, "", 0.0, sketches)


def version(*traces: Trace, number: str = "1.1.0", faults: tuple[str, ...] = ()) -> ExaminedVersion:
    return ExaminedVersion(number, traces, None, None, faults, 0.0, 0)


def measured(
    new: ExaminedVersion, old: ExaminedVersion | None = None, **changes: object
) -> SandboxMeasurement:
    made = SandboxMeasurement("image", old, new, ITEMS, (Precision.FP32,), (), ())
    return replace(made, **changes)  # type: ignore[arg-type]
