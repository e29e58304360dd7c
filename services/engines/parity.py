"""Measures how far an engine is from its source model. Judges nothing: `validators.parity` does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from services.engines.cases import Case
from services.engines.tensors import Arrays
from validators.contracts.engine import Deviation
from validators.contracts.errors import BadInput

_TINY = float(np.finfo(np.float32).tiny)


def measure_deviations(
    cases: Sequence[Case], reference: Sequence[Arrays], engine: Sequence[Arrays]
) -> tuple[Deviation, ...]:
    """One deviation per case and output.

    Raises:
        BadInput: the source model itself answers NaN, or the two differ in shape.
    """
    return tuple(
        deviation(case.name, name, expected[name], found[name])
        for case, expected, found in zip(cases, reference, engine, strict=True)
        for name in expected
    )


def deviation(
    case: str, output: str, reference: npt.NDArray[Any], engine: npt.NDArray[Any]
) -> Deviation:
    """How far one output is from the reference, over every element.

    An infinity of the reference (a mask in logits) counts as met where the engine has the same
    one. Rows are the leading axis; a row with an element that is not finite has cosine -1.
    """
    if reference.shape != engine.shape:
        raise BadInput(
            f"output {output} has shape {engine.shape} in the engine, not {reference.shape}",
            where=case,
            remedy="Build the engine from the model it is compared with.",
        )
    wanted, found = reference.astype(np.float64), engine.astype(np.float64)
    if np.isnan(wanted).any():
        raise BadInput(
            f"the source model itself answers NaN in output {output}", where=case,
            remedy="Correct the model, or the range that its contract declares for inputs.",
        )  # fmt: skip
    with np.errstate(invalid="ignore"):
        same_infinity = np.isinf(wanted) & (wanted == found)
    broken = ~same_infinity & (~np.isfinite(found) | np.isinf(wanted))
    usable = ~same_infinity & ~broken
    wanted, found = np.where(usable, wanted, 0.0), np.where(usable, found, 0.0)
    gaps = np.abs(wanted - found)
    max_abs = float(gaps.max(initial=0.0))
    peak = float(np.abs(wanted).max(initial=0.0))
    return Deviation(
        case=case,
        output=output,
        max_abs=max_abs,
        max_rel=max_abs / max(peak, _TINY) if max_abs else 0.0,
        cosine_min=_least_cosine(wanted, found, broken),
        nonfinite=int(broken.sum()),
    )


def _least_cosine(
    wanted: npt.NDArray[np.float64],
    found: npt.NDArray[np.float64],
    broken: npt.NDArray[np.bool_],
) -> float:
    """Two zero rows agree; a zero row against another one does not."""
    rows = wanted.shape[0] if wanted.ndim else 1
    if wanted.size == 0:
        return 1.0
    a, b = wanted.reshape(rows, -1), found.reshape(rows, -1)
    norms = np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1)
    product = norms[0] * norms[1]
    both_zero = (norms[0] == 0) & (norms[1] == 0)
    cosine = np.where(both_zero, 1.0, (a * b).sum(axis=1) / np.where(product == 0, 1.0, product))
    cosine = np.where(broken.reshape(rows, -1).any(axis=1), -1.0, cosine)
    return float(np.clip(cosine.min(), -1.0, 1.0))
