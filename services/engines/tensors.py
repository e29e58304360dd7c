"""Named arrays: their types, their digest, and a file of them (NumPy's own format, no pickle)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from validators.contracts.digest import Digest, canonical_json
from validators.contracts.errors import Unsupported
from validators.contracts.ports import Tensors
from validators.contracts.tensors import DType, TensorSpec

Arrays = dict[str, npt.NDArray[Any]]

NUMPY_TYPES: dict[DType, np.dtype[Any]] = {
    DType.BOOL: np.dtype(np.bool_),
    DType.UINT8: np.dtype(np.uint8),
    DType.INT8: np.dtype(np.int8),
    DType.INT32: np.dtype(np.int32),
    DType.INT64: np.dtype(np.int64),
    DType.FP16: np.dtype(np.float16),
    DType.FP32: np.dtype(np.float32),
    DType.FP64: np.dtype(np.float64),
}


def numpy_type(spec: TensorSpec) -> np.dtype[Any]:
    """The NumPy type of a contract's tensor.

    Raises:
        Unsupported: BYTES and BF16 do not cross the border of an engine.
    """
    try:
        return NUMPY_TYPES[spec.dtype]
    except KeyError:
        raise Unsupported(
            f"an engine cannot take or give {spec.dtype.value}",
            where=spec.describe(),
            remedy="Cast inside the model, so that its tensors are FP32 or integers.",
        ) from None


def digest_feeds(cases: Sequence[Tensors]) -> Digest:
    """One digest over several sets of named arrays: names, types, shapes and values."""
    hasher = hashlib.sha256()
    for feeds in cases:
        for name in sorted(feeds):
            array = np.ascontiguousarray(feeds[name])
            head = {"name": name, "dtype": str(array.dtype), "shape": list(array.shape)}
            hasher.update(canonical_json(head) + b"\n")
            hasher.update(array.tobytes())
        hasher.update(b"\n")
    return Digest("sha256:" + hasher.hexdigest())


def save_cases(path: Path, cases: Sequence[Tensors]) -> None:
    """Write sets of named arrays to one file."""
    flat = {f"{index}|{name}": array for index, feeds in enumerate(cases)
            for name, array in feeds.items()}  # fmt: skip
    with path.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **flat)


def load_cases(source: Path | BinaryIO) -> list[Arrays]:
    """Read what `save_cases` wrote, in order."""
    found: dict[int, Arrays] = {}
    with np.load(source, allow_pickle=False) as stored:
        for key in stored.files:
            index, _, name = key.partition("|")
            found.setdefault(int(index), {})[name] = stored[key]
    return [found[index] for index in sorted(found)]


def picked(arrays: Mapping[str, npt.NDArray[Any]], specs: Sequence[TensorSpec]) -> Arrays:
    """The arrays of a contract's tensors, in its order, each contiguous."""
    return {spec.name: np.ascontiguousarray(arrays[spec.name]) for spec in specs}
