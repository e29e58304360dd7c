"""Named arrays on a pipe between processes: a JSON head, then the arrays' bytes. No pickle.

A frame is the head's length (8 bytes, little-endian), the head, and each array in C order.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from services.children.report import ErrorDocument
from services.engines.tensors import NUMPY_TYPES, Arrays
from validators.contracts.digest import canonical_json
from validators.contracts.documents import load
from validators.contracts.errors import BadInput, Refused
from validators.contracts.ports import Tensors

Fill = Callable[[memoryview], None]
"""Fills it whole, or raises EOFError where the pipe ends first."""

MAX_HEAD_BYTES = 256 * 1024
MAX_FRAME_BYTES = 1024**3
_LENGTH = struct.Struct("<Q")
_TYPES = {dtype.str: dtype for dtype in NUMPY_TYPES.values()}


@dataclass(frozen=True, slots=True)
class ArrayHead:
    """One array to come: `dtype` as NumPy writes it, little-endian."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FrameHead:
    """Either arrays or an error."""

    arrays: tuple[ArrayHead, ...] = ()
    error: ErrorDocument | None = None


def pack_frame(arrays: Tensors, error: ErrorDocument | None = None) -> list[memoryview]:
    """One frame, to be written piece by piece; arrays are not copied.

    Raises:
        BadInput: an array of a type that no engine takes or gives.
    """
    heads, bodies = [], []
    for name, array in arrays.items():
        if array.dtype.str not in _TYPES:
            raise BadInput(
                f"no engine takes {array.dtype}", where=name,
                remedy="Send the data type of the contract.",
            )  # fmt: skip
        heads.append(ArrayHead(name, array.dtype.str, tuple(array.shape)))
        bodies.append(_bytes_of(np.ascontiguousarray(array)))
    head = canonical_json(FrameHead(tuple(heads), error))
    return [memoryview(_LENGTH.pack(len(head)) + head), *bodies]


def receive_frame(fill: Fill) -> tuple[Arrays, ErrorDocument | None]:
    """Read one frame.

    Raises:
        EOFError: the pipe ended.  Refused: what came is no frame, or larger than MAX_FRAME_BYTES.
    """
    prefix = bytearray(_LENGTH.size)
    fill(memoryview(prefix))
    (size,) = _LENGTH.unpack(prefix)
    if size > MAX_HEAD_BYTES:
        raise Refused(f"a frame's head of {size} bytes")
    text = bytearray(size)
    fill(memoryview(text))
    head = load(FrameHead, bytes(text), where="a frame")
    if sum(map(_size_of, head.arrays)) > MAX_FRAME_BYTES:
        raise Refused(f"a frame of over {MAX_FRAME_BYTES >> 20} MiB")
    arrays = {}
    for item in head.arrays:
        array = np.empty(item.shape, _TYPES[item.dtype])
        fill(_bytes_of(array))
        arrays[item.name] = array
    return arrays, head.error


def _size_of(head: ArrayHead) -> int:
    if head.dtype not in _TYPES or any(size < 0 for size in head.shape):
        raise Refused("a frame announces an array that there cannot be")
    return math.prod(head.shape) * _TYPES[head.dtype].itemsize


def _bytes_of(array: npt.NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data
