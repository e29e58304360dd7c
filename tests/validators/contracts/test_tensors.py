from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.contracts.errors import BadInput
from validators.contracts.tensors import DType, Meaning, TensorSpec, bind_shape

dims = st.lists(st.one_of(st.integers(1, 9), st.sampled_from(["batch", "n", "t"])), max_size=5)


def spec(*shape: int | str) -> TensorSpec:
    return TensorSpec("tensor", DType.FP32, shape, Meaning.PIXELS)


@given(dims, st.fixed_dictionaries({name: st.integers(1, 99) for name in ("batch", "n", "t")}))
def test_the_shape_that_the_names_stand_for_binds_to_them(
    shape: list[int | str], sizes: dict[str, int]
) -> None:
    concrete = [dim if isinstance(dim, int) else sizes[dim] for dim in shape]
    bound = bind_shape(spec(*shape), concrete)
    assert bound == {dim: sizes[dim] for dim in shape if isinstance(dim, str)}
    assert bind_shape(spec(*shape), concrete, bound) == bound


@given(dims.filter(bool), st.data())
def test_any_other_fixed_size_is_refused(shape: list[int | str], data: st.DataObject) -> None:
    concrete = [dim if isinstance(dim, int) else 3 for dim in shape]
    position = data.draw(st.integers(0, len(shape) - 1))
    wrong = data.draw(st.integers(-5, 20).filter(lambda size: size != concrete[position]))
    dim = shape[position]
    concrete[position] = wrong
    if isinstance(dim, int) or wrong < 1 or shape.count(dim) > 1:
        with pytest.raises(BadInput, match="tensor tensor is"):
            bind_shape(spec(*shape), concrete)
    else:
        assert bind_shape(spec(*shape), concrete)[dim] == wrong


@given(dims, st.lists(st.integers(1, 9), max_size=6))
def test_another_rank_is_refused(shape: list[int | str], concrete: list[int]) -> None:
    if len(shape) != len(concrete):
        with pytest.raises(BadInput, match="rank"):
            bind_shape(spec(*shape), concrete)


def test_one_name_has_one_value_across_tensors() -> None:
    bound = bind_shape(spec("batch", "tokens"), [2, 16])
    with pytest.raises(BadInput, match="is 17, not 16"):
        bind_shape(spec("batch", "tokens"), [2, 17], bound)


@pytest.mark.parametrize("shape", [("batch", 4), (2, 4)])
@pytest.mark.parametrize("size", [0, -1])
def test_a_size_below_one_is_not_compared_with_itself(
    shape: tuple[int | str, ...], size: int
) -> None:
    with pytest.raises(BadInput, match=f"tensor tensor is {size}, not 1 or more"):
        bind_shape(spec(*shape), [size, 4])


def test_binding_leaves_what_was_bound_before_as_it_was() -> None:
    before = {"batch": 2}
    assert bind_shape(spec("batch", "n"), [2, 5], before) == {"batch": 2, "n": 5}
    assert before == {"batch": 2}


def test_a_tensor_describes_itself_for_messages() -> None:
    assert spec("batch", 3).describe() == "tensor FP32 [batch, 3] (pixels)"
