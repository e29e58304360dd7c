from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from services.engines.profiles.bounds import (
    DimBound,
    bind_dims,
    bounds_of,
    shape_profile,
    symbolic_dims,
)
from tests.services.engines.profiles.model import INPUTS
from validators.contracts.engine import ShapeProfile, ShapeRange
from validators.contracts.errors import BadInput

DECLARED = ShapeProfile(
    (ShapeRange("ids", (1, 2), (1, 8), (8, 64)), ShapeRange("mask", (1, 2), (1, 8), (8, 64)))
)


def test_bounds_come_from_the_declared_profile_and_go_back_into_one() -> None:
    bounds = bounds_of(INPUTS, DECLARED)
    assert bounds == (DimBound("batch", 1, 8), DimBound("tokens", 2, 64))
    low = {bound.name: bound.minimum for bound in bounds}
    high = {bound.name: bound.maximum for bound in bounds}
    assert shape_profile(INPUTS, low, {"batch": 1, "tokens": 8}, high) == DECLARED
    assert symbolic_dims(INPUTS) == ("batch", "tokens")


@pytest.mark.parametrize(
    ("ranges", "said"),
    [
        ((ShapeRange("pixels", (1,), (1,), (1,)),), "no input"),
        ((), "does not bound dimension batch"),
        (
            (*DECLARED.ranges[:1], ShapeRange("mask", (1, 2), (1, 8), (8, 32))),
            "dimension 1 (tokens) of tensor mask is 32",
        ),
    ],
)
def test_a_profile_that_contradicts_the_contract_sets_no_bounds(
    ranges: tuple[ShapeRange, ...], said: str
) -> None:
    with pytest.raises(BadInput) as caught:
        bounds_of(INPUTS, ShapeProfile(ranges))
    assert said in caught.value.what


@pytest.mark.parametrize(("low", "high"), [(0, 3), (4, 3), (1, 1 << 21)])
def test_bounds_that_hold_no_size_are_refused(low: int, high: int) -> None:
    with pytest.raises(BadInput):
        DimBound("tokens", low, high)


def test_a_request_binds_the_named_dimensions() -> None:
    assert bind_dims(INPUTS, {"ids": (3, 7), "mask": (3, 7)}) == {"batch": 3, "tokens": 7}


@pytest.mark.parametrize("shapes", [{"ids": (3, 7)}, {"ids": (3, 7), "mask": (3, 8)}])
def test_a_request_that_contradicts_itself_binds_nothing(
    shapes: Mapping[str, Sequence[int]],
) -> None:
    with pytest.raises(BadInput):
        bind_dims(INPUTS, shapes)
