"""The guard in front of every engine: ONNX Runtime enforces no bounds, so it is ours. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from services.engines.tensors import numpy_type
from validators.contracts.engine import ShapeProfile
from validators.contracts.errors import BadInput
from validators.contracts.ports import Tensors
from validators.contracts.tensors import Meaning, TensorSpec, bind_shape


def check_feeds(
    feeds: Tensors, inputs: Sequence[TensorSpec], profiles: Sequence[ShapeProfile]
) -> int:
    """The index of the first profile that covers these inputs.

    Raises:
        BadInput: a missing, unknown or mistyped tensor, a shape that contradicts the contract, or
            one outside every profile; a number that `check_values` refuses.
    """
    bind_feeds(feeds, inputs)
    shapes = {name: array.shape for name, array in feeds.items()}
    for index, profile in enumerate(profiles):
        if profile.covers(shapes):
            check_values(feeds, inputs)
            return index
    raise BadInput(
        "the inputs' shapes are outside every profile of this engine",
        where=", ".join(f"{name} {list(shape)}" for name, shape in sorted(shapes.items())),
        remedy="Stay within one of: " + "; ".join(map(_describe, profiles)) + ".",
    )


def bind_feeds(feeds: Tensors, inputs: Sequence[TensorSpec]) -> dict[str, int]:
    """The sizes of the named dimensions of inputs that keep to their contract, at any size.

    Raises:
        BadInput: a missing, unknown or mistyped tensor, or a shape that contradicts the contract.
    """
    _check_names(feeds, inputs)
    dims: dict[str, int] = {}
    for spec in inputs:
        array = feeds[spec.name]
        if array.dtype != numpy_type(spec):
            raise BadInput(
                f"input {spec.name} is {array.dtype}, not {spec.dtype.value}",
                where=spec.describe(),
                remedy="Send the data type of the contract.",
            )
        dims = bind_shape(spec, array.shape, dims)
    return dims


def check_values(feeds: Tensors, inputs: Sequence[TensorSpec]) -> None:
    """Look at every number.

    Raises:
        BadInput: a token id outside its range, which an engine would read past its table for; a
            mask outside its range, which would weigh its position wrongly; a number that is not
            finite.
    """
    for spec in inputs:
        _check_values(spec, feeds[spec.name])


def _check_names(feeds: Tensors, inputs: Sequence[TensorSpec]) -> None:
    wanted = {spec.name for spec in inputs}
    if missing := sorted(wanted - feeds.keys()):
        raise BadInput(
            f"input {missing[0]} is missing",
            where=", ".join(missing),
            remedy="Send every input: " + ", ".join(sorted(wanted)) + ".",
        )
    if unknown := sorted(feeds.keys() - wanted):
        raise BadInput(
            f"this engine has no input {unknown[0][:80]!r}",
            remedy="Send only: " + ", ".join(sorted(wanted)) + ".",
        )


def _check_values(spec: TensorSpec, array: npt.NDArray[Any]) -> None:
    if spec.value_range is not None and _is_held(spec, array):
        _check_range(spec, array, spec.value_range)
    # A mask may hold minus infinity, to be added to scores.
    floating = np.issubdtype(array.dtype, np.floating)
    if floating and spec.meaning is not Meaning.ATTENTION_MASK and not np.isfinite(array).all():
        raise BadInput(
            f"input {spec.name} holds numbers that are not finite",
            where=spec.describe(),
            remedy="Send no NaN and no infinity.",
        )


def _is_held(spec: TensorSpec, array: npt.NDArray[Any]) -> bool:
    """Whether its range binds. One of other numbers says what is usual, not what is possible."""
    if spec.meaning is Meaning.ATTENTION_MASK:
        return np.issubdtype(array.dtype, np.integer) or spec.value_range == (0.0, 1.0)
    return spec.meaning is Meaning.TOKEN_IDS


def _check_range(spec: TensorSpec, array: npt.NDArray[Any], limits: tuple[float, float]) -> None:
    lowest, highest = array.min(), array.max()
    if lowest >= limits[0] and highest <= limits[1]:
        return
    found = lowest if lowest < limits[0] else highest
    raise BadInput(
        f"input {spec.name} holds {found}, outside {limits[0]:.15g} to {limits[1]:.15g}",
        where=spec.describe(),
        remedy="Send ids of the encoder's own tokenizer."
        if spec.meaning is Meaning.TOKEN_IDS
        else "Send what the encoder's preprocessing makes.",
    )


def _describe(profile: ShapeProfile) -> str:
    return ", ".join(
        f"{item.tensor} {list(item.minimum)} to {list(item.maximum)}" for item in profile.ranges
    )
