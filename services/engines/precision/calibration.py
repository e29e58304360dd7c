"""Whether calibration data can be what the contract says. Pure.

Seen: wrong names, types, shapes and token ids; values outside the declared range; values that use
a sliver of it, hardly vary or sit on its ends; one sample many times. Not seen, and said in the
notes: data of another modality that has the shape, the range and the spread of the right one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from services.engines.guard import check_feeds
from services.engines.tensors import digest_feeds
from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import ShapeProfile
from validators.contracts.errors import BadInput
from validators.contracts.ports import Tensors
from validators.contracts.tensors import Meaning, TensorSpec

MINIMUM_SAMPLES = 16
ROUNDING = 1e-3
"""Share of the declared range that values may lie outside of it: preprocessing rounds."""

LEAST_SPAN = 0.02
"""Share of the declared range that the values have to span. Pictures as 0 to 1 where 0 to 255 is
declared span 0.4 %; a dark picture spans a third."""

LEAST_SPREAD = 1e-3
"""Least standard deviation, as a share of the range: below it the data is a constant and noise."""

MOST_SATURATED = 0.95
"""Share of values that may sit on the ends of the range. A drawing on white has up to 0.8."""


def check_calibration(
    contract: EncoderContract, profiles: Sequence[ShapeProfile], feeds: Sequence[Tensors]
) -> tuple[str, ...]:
    """What cannot be seen about the data, as sentences.

    Raises:
        BadInput: the data cannot be this encoder's, or is too little.
    """
    if len(feeds) < MINIMUM_SAMPLES:
        raise BadInput(
            f"{len(feeds)} calibration samples, {MINIMUM_SAMPLES} are the least",
            where=contract.name,
            remedy="Give more samples of the encoder's own data, preprocessed as it is served.",
        )  # fmt: skip
    for number, case in enumerate(feeds):
        _check_sample(contract, profiles, case, number)
    distinct = len({digest_feeds([case]) for case in feeds})
    if distinct < MINIMUM_SAMPLES:
        raise BadInput(
            f"only {distinct} of {len(feeds)} calibration samples differ", where=contract.name,
            remedy=f"Give at least {MINIMUM_SAMPLES} different samples.",
        )  # fmt: skip
    notes: list[str] = []
    for spec in contract.inputs:
        arrays = [case[spec.name] for case in feeds]
        if spec.meaning is Meaning.ATTENTION_MASK:
            _check_mask(spec, arrays)
        elif arrays[0].dtype.kind == "f":
            _check_spread(spec, arrays)
        elif all(int(array.min()) == int(array.max()) for array in arrays):
            raise _foreign(spec, "every sample holds one number only")
        notes.extend(_unseen(spec))
    return tuple(notes)


def _check_sample(
    contract: EncoderContract, profiles: Sequence[ShapeProfile], case: Tensors, number: int
) -> None:
    try:
        check_feeds(case, contract.inputs, profiles)
    except BadInput as error:
        raise BadInput(
            f"calibration sample {number}: {error.what}", where=error.where or contract.name,
            remedy=error.remedy,
        ) from error  # fmt: skip


def _check_mask(spec: TensorSpec, arrays: Sequence[npt.NDArray[Any]]) -> None:
    if not any(bool(array.any()) for array in arrays):
        raise _foreign(spec, "every position is masked")


def _check_spread(spec: TensorSpec, arrays: Sequence[npt.NDArray[Any]]) -> None:
    low = min(float(array.min()) for array in arrays)
    high = max(float(array.max()) for array in arrays)
    bottom, top = spec.value_range or (low, high)
    width = top - bottom
    if low < bottom - ROUNDING * width or high > top + ROUNDING * width:
        raise _foreign(spec, f"its values go from {low:.4g} to {high:.4g}")
    if width <= 0 or high - low < LEAST_SPAN * width:
        raise _foreign(spec, f"its values span {low:.4g} to {high:.4g} only")
    if _deviation(arrays) < LEAST_SPREAD * width:
        raise _foreign(spec, "its values hardly vary")
    if spec.value_range is not None:
        edge = ROUNDING * width
        total = sum(array.size for array in arrays)
        at_ends = sum(
            int(((array <= bottom + edge) | (array >= top - edge)).sum()) for array in arrays
        )
        if at_ends > MOST_SATURATED * total:
            raise _foreign(spec, f"{at_ends / total:.0%} of its values sit on the range's ends")


def _deviation(arrays: Sequence[npt.NDArray[Any]]) -> float:
    count = sum(array.size for array in arrays)
    mean = sum(float(array.sum(dtype=np.float64)) for array in arrays) / count
    squares = sum(float(np.square(array - mean, dtype=np.float64).sum()) for array in arrays)
    return float(np.sqrt(squares / count))


def _unseen(spec: TensorSpec) -> Iterator[str]:
    if spec.meaning is Meaning.ATTENTION_MASK:
        return
    if spec.value_range is None:
        yield (
            f"{spec.name} declares no range: data of another modality or scale with its shape "
            "would not have been noticed"
        )
    elif spec.meaning is Meaning.TOKEN_IDS:
        yield f"{spec.name}: ids of another tokenizer within the range would not have been noticed"
    else:
        yield (
            f"{spec.name}: another modality with the same shape, range and spread would not have "
            "been noticed"
        )


def _foreign(spec: TensorSpec, finding: str) -> BadInput:
    declared = (
        f"the contract declares {spec.value_range[0]:.4g} to {spec.value_range[1]:.4g}"
        if spec.value_range is not None
        else "the contract declares no range"
    )
    return BadInput(
        f"the calibration data of {spec.name} is not {spec.meaning.value}: {finding}, {declared}",
        where=spec.describe(),
        remedy="Give samples of the encoder's own modality, preprocessed as they are served.",
    )
