from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from services.engines.guard import check_feeds
from tests.services.engines.models import TEXT, TEXT_PROFILES
from validators.contracts.errors import BadInput


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
