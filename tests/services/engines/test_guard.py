from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from services.engines.guard import check_feeds
from services.engines.tensors import numpy_type
from tests.services.engines.models import IMAGE, IMAGE_PROFILES, TEXT, TEXT_PROFILES, profile
from validators.contracts.errors import BadInput
from validators.contracts.tensors import DType, Meaning, TensorSpec


def _feeds(batch: int, tokens: int, **changes: Any) -> dict[str, Any]:
    feeds: dict[str, Any] = {
        "ids": np.zeros((batch, tokens), np.int64), "mask": np.ones((batch, tokens), np.int64)
    }  # fmt: skip
    return {name: value for name, value in (feeds | changes).items() if value is not None}


@pytest.mark.parametrize(("batch", "tokens", "profile"), [(1, 32, 0), (1, 2, 0), (8, 16, 1)])
def test_shapes_inside_a_profile_are_let_through(batch: int, tokens: int, profile: int) -> None:
    assert check_feeds(_feeds(batch, tokens), TEXT.inputs, TEXT_PROFILES) == profile


@pytest.mark.parametrize(
    ("feeds", "said"),
    [
        (_feeds(1, 33), "outside every profile"),
        (_feeds(8, 32), "outside every profile"),  # inside the union, in neither profile
        (_feeds(1, 8, mask=None), "mask is missing"),
        (_feeds(1, 8, extra=np.zeros(1)), "no input 'extra'"),
        (_feeds(1, 8, ids=np.zeros((1, 8), np.int32)), "int32, not INT64"),
        (_feeds(1, 8, ids=np.zeros((1, 8, 1), np.int64)), "rank 3"),
        (_feeds(4, 8, mask=np.ones((5, 8), np.int64)), "dimension 0 (batch) of tensor mask is 5"),
        (_feeds(0, 8), "is 0"),
    ],
)
def test_what_the_contract_or_every_profile_excludes_is_refused(
    feeds: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput) as caught:
        check_feeds(feeds, TEXT.inputs, TEXT_PROFILES)
    assert said in caught.value.what
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("found", "said"), [(100, "holds 100, outside 0 to 99"), (-1, "holds -1, outside 0 to 99")]
)
def test_a_token_id_outside_its_range_is_refused(found: int, said: str) -> None:
    feeds = _feeds(1, 8)
    feeds["ids"][0, 3] = found
    with pytest.raises(BadInput) as caught:
        check_feeds(feeds, TEXT.inputs, TEXT_PROFILES)
    assert caught.value.what == f"input ids {said}"
    assert "ids INT64" in caught.value.where
    feeds["ids"][0, :2] = 0, 99
    feeds["ids"][0, 3] = 5
    assert check_feeds(feeds, TEXT.inputs, TEXT_PROFILES) == 0


@pytest.mark.parametrize("dtype", [DType.INT64, DType.FP32])
@pytest.mark.parametrize("found", [7, -1])
def test_a_mask_outside_its_range_is_refused(dtype: DType, found: int) -> None:
    spec = TensorSpec("mask", dtype, ("batch", 4), Meaning.ATTENTION_MASK, value_range=(0.0, 1.0))
    profiles = [profile(("mask", (1, 4), (1, 4), (1, 4)))]
    mask = np.ones((1, 4), numpy_type(spec))
    mask[0, 3] = 0
    assert check_feeds({"mask": mask}, [spec], profiles) == 0
    mask[0, 1] = found
    with pytest.raises(BadInput, match=f"input mask holds {found}.*, outside 0 to 1") as caught:
        check_feeds({"mask": mask}, [spec], profiles)
    assert "ids" not in caught.value.remedy


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(strange: float) -> None:
    pixels = np.zeros((1, 3, 16, 16), np.float32)
    pixels[0, 1, 2, 3] = strange
    with pytest.raises(BadInput, match="input pixels holds numbers that are not finite"):
        check_feeds({"pixels": pixels}, IMAGE.inputs, IMAGE_PROFILES)


def test_finite_numbers_outside_their_range_are_let_through() -> None:
    pixels = np.full((1, 3, 16, 16), 7.0, np.float32)
    assert check_feeds({"pixels": pixels}, IMAGE.inputs, IMAGE_PROFILES) == 0


def test_a_mask_of_minus_infinity_is_let_through() -> None:
    spec = TensorSpec("mask", DType.FP32, ("batch", 4), Meaning.ATTENTION_MASK)
    mask = np.full((1, 4), -np.inf, np.float32)
    assert check_feeds({"mask": mask}, [spec], [profile(("mask", (1, 4), (1, 4), (1, 4)))]) == 0
