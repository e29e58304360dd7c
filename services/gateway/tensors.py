"""Tensors on the wire, as the Open Inference Protocol and its binary extension lay them out.

Numbers are little-endian and row-major; an element of BYTES is its length as four bytes, then
itself. (kserve/open-inference-protocol; triton-inference-server extension_binary_data.)
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from validators.contracts.errors import BadInput, TooLarge, Unsupported

NUMPY_TYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    "UINT8": np.dtype("u1"),
    "UINT16": np.dtype("<u2"),
    "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"),
    "INT8": np.dtype("i1"),
    "INT16": np.dtype("<i2"),
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
}
MAX_RANK = 8
MAX_ELEMENTS = 1 << 28
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class WireTensor:
    """A named tensor of a request or answer.

    `values` has the tensor's shape: of the datatype's NumPy type, or objects (bytes) for BYTES.
    """

    name: str
    datatype: str
    values: npt.NDArray[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def size_bytes(self) -> int:
        if self.datatype == "BYTES":
            return sum(len(item) for item in self.values.flat)
        return self.values.nbytes


def make_bytes(items: Sequence[bytes]) -> npt.NDArray[Any]:
    """A one-dimensional BYTES tensor's values."""
    values = np.empty(len(items), dtype=object)
    values[:] = items
    return values


def datatype_of(values: npt.NDArray[Any]) -> str:
    """The protocol's name for a NumPy type. Raises Unsupported."""
    for name, dtype in NUMPY_TYPES.items():
        if dtype == values.dtype:
            return name
    raise Unsupported(f"a tensor of {values.dtype} has no datatype on the wire")


def tensor_from_raw(
    name: str, datatype: str, shape: Sequence[int], raw: bytes | memoryview
) -> WireTensor:
    """A tensor whose bytes came as they are; numbers are not copied.

    Raises:
        BadInput: another number of bytes than type and shape make.
    """
    count = count_elements(name, shape)
    if datatype == "BYTES":
        return WireTensor(name, datatype, make_bytes(_split(name, raw, count)).reshape(shape))
    dtype = _require_type(name, datatype)
    if len(raw) != count * dtype.itemsize:
        raise BadInput(
            f"tensor {name} has {len(raw)} bytes, its shape and type make {count * dtype.itemsize}",
            where=f"inputs.{name}",
            remedy="Send the bytes of the whole tensor, little-endian and row-major.",
        )
    if datatype == "BOOL" and len(raw) and max(raw) > 1:
        raise BadInput(f"tensor {name} holds a BOOL other than 0 and 1", where=f"inputs.{name}")
    return WireTensor(name, datatype, np.frombuffer(raw, dtype).reshape(shape))


def tensor_from_list(name: str, datatype: str, shape: Sequence[int], data: object) -> WireTensor:
    """A tensor whose data came as a JSON array, nested or flat, or as typed contents.

    Raises:
        BadInput: ragged, of another length than the shape, or values that the type cannot hold.
    """
    count = count_elements(name, shape)
    if not isinstance(data, list):
        raise BadInput(f"tensor {name} has no data array", where=f"inputs.{name}.data")
    flat = _flatten(name, data, count)
    if len(flat) != count:
        raise BadInput(
            f"tensor {name} has {len(flat)} elements, its shape makes {count}",
            where=f"inputs.{name}.data",
            remedy="Send as many elements as the product of the shape.",
        )
    if datatype == "BYTES":
        return WireTensor(name, datatype, make_bytes(_encode_all(name, flat)).reshape(shape))
    values = _convert(name, datatype, _require_type(name, datatype), flat)
    return WireTensor(name, datatype, values.reshape(shape))


def raw_of(tensor: WireTensor) -> bytes:
    """The tensor's bytes as the binary extension sends them."""
    if tensor.datatype == "BYTES":
        return b"".join(_LENGTH.pack(len(item)) + item for item in tensor.values.flat)
    values = tensor.values.astype(NUMPY_TYPES[tensor.datatype], copy=False)
    return values.tobytes()


def list_of(tensor: WireTensor) -> list[Any]:
    """The tensor's elements as a flat JSON array. Raises Unsupported for bytes that are no text."""
    if tensor.datatype != "BYTES":
        flat: list[Any] = tensor.values.reshape(-1).tolist()
        return flat
    try:
        return [item.decode("utf-8") for item in tensor.values.flat]
    except UnicodeDecodeError as error:
        raise Unsupported(
            f"tensor {tensor.name} holds bytes that are no text",
            remedy="Ask for it with binary_data true.",
        ) from error


def count_elements(name: str, shape: Sequence[int]) -> int:
    """The product of a shape that may be trusted. Raises BadInput, TooLarge."""
    if len(shape) > MAX_RANK or any(dim < 0 for dim in shape):
        raise BadInput(f"tensor {name} has an impossible shape", where=f"inputs.{name}.shape")
    count = math.prod(shape)
    if count > MAX_ELEMENTS or any(dim > MAX_ELEMENTS for dim in shape):
        raise TooLarge(f"tensor {name} has more than {MAX_ELEMENTS} elements")
    return count


def _require_type(name: str, datatype: str) -> np.dtype[Any]:
    dtype = NUMPY_TYPES.get(datatype)
    if dtype is None:
        raise Unsupported(
            f"tensor {name} has the unknown datatype {datatype[:20]!r}",
            where=f"inputs.{name}.datatype",
            remedy=f"Use one of: {', '.join([*NUMPY_TYPES, 'BYTES'])}.",
        )
    return dtype


def _split(name: str, raw: bytes | memoryview, count: int) -> list[bytes]:
    items: list[bytes] = []
    view, position = memoryview(raw), 0
    while position < len(view) and len(items) <= count:
        end = position + _LENGTH.size
        length = _LENGTH.unpack(view[position:end])[0] if end <= len(view) else len(view)
        if end + length > len(view):
            raise BadInput(
                f"tensor {name} ends within an element",
                where=f"inputs.{name}",
                remedy="Write each element as its length in four bytes, then its bytes.",
            )
        items.append(bytes(view[end : end + length]))
        position = end + length
    if len(items) != count:
        raise BadInput(
            f"tensor {name} holds {'more' if len(items) > count else len(items)} elements, "
            f"its shape makes {count}",
            where=f"inputs.{name}",
        )
    return items


def _flatten(name: str, data: list[Any], count: int) -> list[Any]:
    flat = data
    for _ in range(MAX_RANK):
        if not flat or not isinstance(flat[0], list):
            break
        if not all(isinstance(row, list) and len(row) == len(flat[0]) for row in flat):
            raise BadInput(f"tensor {name} is ragged", where=f"inputs.{name}.data")
        flat = [item for row in flat for item in row]
        if len(flat) > count:
            break
    if any(isinstance(item, list | dict) for item in flat):
        raise BadInput(f"tensor {name} is ragged", where=f"inputs.{name}.data")
    return flat


def _encode_all(name: str, flat: list[Any]) -> list[bytes]:
    if not all(isinstance(item, str | bytes) for item in flat):
        raise BadInput(f"tensor {name} of BYTES holds something other than text")
    return [item.encode() if isinstance(item, str) else item for item in flat]


def _convert(name: str, datatype: str, dtype: np.dtype[Any], flat: list[Any]) -> npt.NDArray[Any]:
    wanted = bool if datatype == "BOOL" else int if dtype.kind in "iu" else (int, float)
    is_bool = datatype == "BOOL"
    if not all(isinstance(item, wanted) and isinstance(item, bool) == is_bool for item in flat):
        raise BadInput(
            f"tensor {name} holds values that are no {datatype}", where=f"inputs.{name}.data"
        )
    try:
        return np.array(flat, dtype=dtype)
    except (OverflowError, ValueError) as error:
        raise BadInput(
            f"tensor {name} holds values outside {datatype}", where=f"inputs.{name}.data"
        ) from error
