"""Tensors that are ready already: passed through, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from services.preprocess.options import read_options
from validators.contracts.digest import Digest
from validators.contracts.encoder import PreprocessSpec
from validators.contracts.errors import BadInput, TooLarge

_TYPES: dict[str, type[np.generic]] = {
    "FP32": np.float32,
    "FP16": np.float16,
    "INT64": np.int64,
    "INT32": np.int32,
    "UINT8": np.uint8,
}


@dataclass(frozen=True, slots=True)
class TensorPreprocessor:
    """An array with a leading batch dimension of 1 → `tensor`, unchanged."""

    tensor: str
    dtype: np.dtype[Any]
    max_elements: int

    def __call__(self, raw: object) -> dict[str, npt.NDArray[Any]]:
        if not isinstance(raw, np.ndarray) or raw.dtype != self.dtype:
            seen = raw.dtype if isinstance(raw, np.ndarray) else type(raw).__name__
            raise BadInput(
                f"tensor {self.tensor} was given as {seen}, not {self.dtype}",
                where=self.tensor,
                remedy="Give an array of the declared type.",
            )
        if raw.size > self.max_elements:
            raise TooLarge(f"tensor {self.tensor} has {raw.size} elements", where=self.tensor)
        if raw.ndim == 0 or raw.shape[0] != 1 or raw.size == 0:
            raise BadInput(
                f"tensor {self.tensor} has shape {list(raw.shape)}",
                where=self.tensor,
                remedy="Give one item with a leading batch dimension of 1, no dimension empty.",
            )
        if self.dtype.kind == "f" and not np.isfinite(raw).all():
            raise BadInput(f"tensor {self.tensor} holds NaN or infinity", where=self.tensor)
        return {self.tensor: np.ascontiguousarray(raw)}


def make_tensor(spec: PreprocessSpec, read_asset: Callable[[Digest], bytes]) -> TensorPreprocessor:
    """Options: tensor, dtype (FP32, FP16, INT64, INT32, UINT8), max_elements."""
    del read_asset
    options = read_options(spec, ("tensor", "dtype", "max_elements"))
    return TensorPreprocessor(
        tensor=options.text("tensor", "values"),
        dtype=np.dtype(_TYPES[options.text("dtype", "FP32", tuple(_TYPES))]),
        max_elements=options.integer("max_elements", 16_777_216, 1, 268_435_456),
    )
