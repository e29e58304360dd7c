"""Tensors on the wire."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from services.gateway.tensors import (
    NUMPY_TYPES,
    WireTensor,
    datatype_of,
    list_of,
    make_bytes,
    raw_of,
    tensor_from_list,
    tensor_from_raw,
)
from validators.contracts.errors import BadInput, ModalgateError, TooLarge, Unsupported

shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@given(st.sampled_from(sorted(NUMPY_TYPES)), st.data())
def test_numbers_survive_the_wire_as_bytes_and_as_a_list(datatype: str, data: Any) -> None:
    finite = {"allow_nan": False, "allow_infinity": False} if "FP" in datatype else None
    values = data.draw(hnp.arrays(NUMPY_TYPES[datatype], shapes, elements=finite))
    tensor = WireTensor("x", datatype, values)
    assert datatype_of(values) == datatype
    raw = tensor_from_raw("x", datatype, tensor.shape, raw_of(tensor))
    listed = tensor_from_list("x", datatype, tensor.shape, list_of(tensor))
    for back in (raw, listed):
        assert back.values.dtype == values.dtype
        assert back.shape == values.shape
        np.testing.assert_array_equal(back.values, values)


@given(st.lists(st.binary(max_size=20), max_size=5))
def test_bytes_survive_the_wire(items: list[bytes]) -> None:
    tensor = WireTensor("x", "BYTES", make_bytes(items))
    back = tensor_from_raw("x", "BYTES", (len(items),), raw_of(tensor))
    assert list(back.values) == items


@given(st.binary(max_size=64), st.integers(0, 5))
def test_no_bytes_make_more_than_a_clean_error(raw: bytes, count: int) -> None:
    for datatype in (*NUMPY_TYPES, "BYTES"):
        try:
            tensor = tensor_from_raw("x", datatype, (count,), raw)
        except ModalgateError:
            continue
        assert tensor.shape == (count,)


def test_nested_lists_are_read_as_flat_ones() -> None:
    tensor = tensor_from_list("x", "INT32", (2, 2), [[1, 2], [3, 4]])
    assert tensor.values.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("datatype", "shape", "data", "kind"),
    [
        ("INT8", (1,), [300], BadInput),
        ("INT32", (1,), [1.5], BadInput),
        ("INT32", (1,), [True], BadInput),
        ("BOOL", (1,), [1], BadInput),
        ("UINT8", (1,), [-1], BadInput),
        ("FP32", (1,), ["1"], BadInput),
        ("FP32", (1,), [None], BadInput),
        ("FP32", (2,), [[1.0], [1.0, 2.0]], BadInput),
        ("FP32", (1,), [{}], BadInput),
        ("FP32", (1,), 1.0, BadInput),
        ("BYTES", (1,), [1], BadInput),
        ("FP12", (1,), [1], Unsupported),
        ("FP32", (1 << 40,), [1], TooLarge),
        ("FP32", (-1,), [1], BadInput),
        ("FP32", (1,) * 9, [1], BadInput),
    ],
)
def test_a_list_that_its_type_cannot_hold_is_refused(
    datatype: str, shape: tuple[int, ...], data: object, kind: type[ModalgateError]
) -> None:
    with pytest.raises(kind):
        tensor_from_list("x", datatype, shape, data)


def test_bytes_that_are_no_text_have_no_json() -> None:
    with pytest.raises(Unsupported):
        list_of(WireTensor("x", "BYTES", make_bytes([b"\xff"])))
