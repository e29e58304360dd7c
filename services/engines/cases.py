"""Inputs to try an encoder with: every corner of every profile, seeded points between, real ones.

Values come from a counter-based generator written out here (SplitMix64, Steele et al. 2014), so
that the same contract gives the same inputs in every version of every library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from services.engines.guard import check_feeds
from services.engines.tensors import Arrays, numpy_type
from validators.contracts.engine import ShapeProfile, ShapeRange
from validators.contracts.errors import BadInput, TooLarge
from validators.contracts.ports import Tensors
from validators.contracts.tensors import Dim, DType, Meaning, TensorSpec

MAX_CASE_BYTES = 512 * 1024 * 1024
_CORNERS = ("minimum", "optimum", "maximum")


@dataclass(frozen=True, slots=True)
class Case:
    """One set of inputs and the name it has in records: "profile 0 maximum", "between 3"."""

    name: str
    feeds: Arrays


def make_cases(
    inputs: Sequence[TensorSpec],
    profiles: Sequence[ShapeProfile],
    *,
    between: int = 3,
    seed: int = 1,
    real: Sequence[Tensors] = (),
) -> tuple[Case, ...]:
    """Corners, then points between, then the caller's own feeds; deterministic.

    Raises:
        BadInput: a profile that contradicts the contract, token ids without a range, or real
            inputs outside every profile.  TooLarge: a corner over MAX_CASE_BYTES.
    """
    cases = []
    for index, profile in enumerate(profiles):
        corners = {
            corner: {item.tensor: getattr(item, corner) for item in ranges(inputs, profile)}
            for corner in _CORNERS
        }
        for corner, shapes in corners.items():
            if shapes in [corners[earlier] for earlier in _CORNERS[: _CORNERS.index(corner)]]:
                continue  # a corner that coincides with an earlier one adds nothing
            name = f"profile {index} {corner}"
            cases.append(Case(name, _fill(inputs, shapes, name, seed)))
    for number in range(between):
        name = f"between {number}"
        shapes = _shapes_between(inputs, profiles[number % len(profiles)], name, seed)
        cases.append(Case(name, _fill(inputs, shapes, name, seed)))
    for number, feeds in enumerate(real):
        check_feeds(feeds, inputs, profiles)
        cases.append(Case(f"real {number}", dict(feeds)))
    return tuple(cases)


def make_case(
    inputs: Sequence[TensorSpec], shapes: Mapping[str, tuple[int, ...]], name: str
) -> Case:
    """One seeded case of these shapes, which the name makes another one. Raises as `make_cases`."""
    return Case(name, _fill(inputs, shapes, name, seed=1))


def canary_case(inputs: Sequence[TensorSpec], profiles: Sequence[ShapeProfile]) -> Case:
    """The one case that is run after every load: the first profile's optimum."""
    shapes = {item.tensor: item.optimum for item in ranges(inputs, profiles[0])}
    return Case("canary", _fill(inputs, shapes, "canary", seed=1))


def ranges(inputs: Sequence[TensorSpec], profile: ShapeProfile) -> tuple[ShapeRange, ...]:
    """The profile's range of every input; one whose shape is fixed by contract needs none."""
    given = {item.tensor: item for item in profile.ranges}
    if unknown := sorted(given.keys() - {spec.name for spec in inputs}):
        raise BadInput(
            f"a profile names {unknown[0]!r}, which is no input of the encoder",
            remedy="Name its inputs: " + ", ".join(spec.name for spec in inputs) + ".",
        )
    return tuple(_checked_range(spec, given.get(spec.name)) for spec in inputs)


def _checked_range(spec: TensorSpec, given: ShapeRange | None) -> ShapeRange:
    fixed = tuple(dim for dim in spec.shape if isinstance(dim, int))
    if given is None and len(fixed) == len(spec.shape):
        return ShapeRange(spec.name, fixed, fixed, fixed)
    if given is None:
        raise BadInput(
            f"no profile range for input {spec.name}, whose shape is not fixed",
            where=spec.describe(),
            remedy="Give it a minimum, an optimum and a maximum.",
        )
    fits = len(given.minimum) == len(spec.shape) and all(
        isinstance(dim, str) or low == dim == high
        for dim, low, high in zip(spec.shape, given.minimum, given.maximum, strict=True)
    )
    if not fits:
        raise BadInput(
            f"the profile of {spec.name} contradicts its contract",
            where=f"{list(given.minimum)} to {list(given.maximum)} for {spec.describe()}",
            remedy="Keep the rank and every fixed dimension of the contract.",
        )
    return given


def _shapes_between(
    inputs: Sequence[TensorSpec], profile: ShapeProfile, name: str, seed: int
) -> dict[str, tuple[int, ...]]:
    spans = {
        (spec.name, position): (item.minimum[position], item.maximum[position])
        for spec, item in zip(inputs, ranges(inputs, profile), strict=True)
        for position in range(len(spec.shape))
    }
    chosen: dict[Dim, int] = {}
    shapes = {}
    for spec in inputs:
        sizes = []
        for position, dim in enumerate(spec.shape):
            low, high = spans[spec.name, position]
            draw = _bits(f"{name} {dim}", 1, seed)[0]
            size = low + int(draw % np.uint64(high - low + 1))
            sizes.append(chosen.setdefault(dim, size) if isinstance(dim, str) else size)
        shapes[spec.name] = tuple(sizes)
    return shapes


def _fill(
    inputs: Sequence[TensorSpec], shapes: Mapping[str, tuple[int, ...]], name: str, seed: int
) -> Arrays:
    total = sum(
        int(np.prod(shapes[spec.name], dtype=np.int64)) * numpy_type(spec).itemsize
        for spec in inputs
    )
    if total > MAX_CASE_BYTES:
        raise TooLarge(
            f"the inputs of {name} take {total >> 20} MiB, over {MAX_CASE_BYTES >> 20} MiB",
            remedy="Lower the largest profile.",
        )
    return {spec.name: _values(spec, shapes[spec.name], name, seed) for spec in inputs}


def _values(spec: TensorSpec, shape: tuple[int, ...], name: str, seed: int) -> npt.NDArray[Any]:
    dtype = numpy_type(spec)
    bits = _bits(f"{name} {spec.name}", int(np.prod(shape, dtype=np.int64)), seed).reshape(shape)
    if spec.meaning is Meaning.ATTENTION_MASK and len(shape) == 2:
        return _mask(bits).astype(dtype)
    if spec.meaning is Meaning.ATTENTION_MASK:
        return np.ones(shape, dtype)
    if dtype.kind in "iu":
        low, high = _whole_range(spec)
        return (low + (bits % np.uint64(high - low + 1)).astype(np.int64)).astype(dtype)
    if spec.dtype is DType.BOOL:
        return (bits & np.uint64(1)).astype(dtype)
    bottom, top = spec.value_range or (-1.0, 1.0)
    unit = (bits >> np.uint64(11)).astype(np.float64) / float(1 << 53)
    spread = bottom + (top - bottom) * unit
    values: npt.NDArray[Any] = np.clip(spread.astype(dtype), bottom, top).astype(dtype)
    return values


def _mask(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Rows of ones, then zeros: the first row full, the others of any length from 1 up."""
    length = bits.shape[1]
    ones = 1 + (bits[:, 0] % np.uint64(length)).astype(np.int64)
    ones[0] = length
    filled: npt.NDArray[np.bool_] = np.arange(length)[None, :] < ones[:, None]
    return filled


def _whole_range(spec: TensorSpec) -> tuple[int, int]:
    if spec.value_range is not None:
        return int(np.ceil(spec.value_range[0])), int(np.floor(spec.value_range[1]))
    if spec.meaning is Meaning.TOKEN_IDS:
        raise BadInput(
            f"input {spec.name} takes token ids, and its contract does not say which",
            where=spec.describe(),
            remedy="Add its range, for example range: [0, 30521] for a vocabulary of 30522.",
        )
    return (0, 255) if spec.dtype is DType.UINT8 else (0, 1)


def _bits(label: str, count: int, seed: int) -> npt.NDArray[np.uint64]:
    """`count` words of SplitMix64 started from the label (its FNV-1a hash) and the seed."""
    start = 0xCBF29CE484222325 ^ seed
    for byte in label.encode():
        start = ((start ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    steps = np.arange(1, count + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        word = np.uint64(start) + steps * np.uint64(0x9E3779B97F4A7C15)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: npt.NDArray[np.uint64] = word ^ (word >> np.uint64(31))
    return mixed
