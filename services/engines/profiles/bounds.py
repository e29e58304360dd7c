"""The named dimensions of a contract's inputs: their bounds, and profiles of concrete shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from validators.contracts.engine import ShapeProfile, ShapeRange
from validators.contracts.errors import BadInput
from validators.contracts.tensors import TensorSpec, bind_shape

MAX_DIMS = 4
MAX_SIZE = 1 << 20


@dataclass(frozen=True, slots=True)
class DimBound:
    """The sizes, inclusive, that a named dimension may take."""

    name: str
    minimum: int
    maximum: int

    def __post_init__(self) -> None:
        if not 1 <= self.minimum <= self.maximum <= MAX_SIZE:
            raise BadInput(
                f"dimension {self.name} is bounded by {self.minimum} and {self.maximum}",
                where=self.name,
                remedy=f"Keep 1 <= minimum <= maximum <= {MAX_SIZE}.",
            )


def symbolic_dims(inputs: Sequence[TensorSpec]) -> tuple[str, ...]:
    """The named dimensions of the inputs, in order of first appearance."""
    names = (dim for spec in inputs for dim in spec.shape if isinstance(dim, str))
    return tuple(dict.fromkeys(names))


def bind_dims(inputs: Sequence[TensorSpec], shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """The named dimensions' sizes in a request whose inputs have these shapes.

    Raises:
        BadInput: an input is missing, or its shape contradicts the contract.
    """
    dims: dict[str, int] = {}
    for spec in inputs:
        if spec.name not in shapes:
            raise BadInput(
                f"input {spec.name} is missing",
                where=spec.describe(),
                remedy="Send every input of the contract.",
            )
        dims = bind_shape(spec, shapes[spec.name], dims)
    return dims


def bounds_of(inputs: Sequence[TensorSpec], declared: ShapeProfile) -> tuple[DimBound, ...]:
    """The bounds that a declared profile sets for the inputs' named dimensions.

    Raises:
        BadInput: a profile that contradicts the contract, or leaves a named dimension open.
    """
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    specs = {spec.name: spec for spec in inputs}
    for item in declared.ranges:
        if item.tensor not in specs:
            raise BadInput(
                f"a profile names {item.tensor!r}, which is no input",
                remedy="Name only: " + ", ".join(specs) + ".",
            )
        low = bind_shape(specs[item.tensor], item.minimum, low)
        high = bind_shape(specs[item.tensor], item.maximum, high)
    names = symbolic_dims(inputs)
    if missing := [name for name in names if name not in high]:
        raise BadInput(
            f"the profile does not bound dimension {missing[0]}",
            remedy="Give a range for every input whose shape is not fixed.",
        )
    return tuple(DimBound(name, low[name], high[name]) for name in names)


def shape_profile(
    inputs: Sequence[TensorSpec],
    minimum: Mapping[str, int],
    optimum: Mapping[str, int],
    maximum: Mapping[str, int],
) -> ShapeProfile:
    """One profile over all inputs from sizes of the named dimensions."""

    def shaped(spec: TensorSpec, sizes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(dim if isinstance(dim, int) else sizes[dim] for dim in spec.shape)

    return ShapeProfile(
        tuple(
            ShapeRange(
                spec.name, shaped(spec, minimum), shaped(spec, optimum), shaped(spec, maximum)
            )
            for spec in inputs
        )
    )
