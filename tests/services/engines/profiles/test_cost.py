from __future__ import annotations

import math

import numpy as np
import pytest

from services.engines.profiles.cost import (
    MemoryModel,
    ShapeFormula,
    Term,
    attention_work,
    linear_work,
    padded_work,
)
from validators.contracts.errors import BadInput


def test_linear_work_is_the_product_of_the_dimensions() -> None:
    work = linear_work(("batch", "tokens"))
    assert work.at({"batch": 3, "tokens": 5}) == 15
    assert padded_work(work, {"batch": 3, "tokens": 5}, {"batch": 4, "tokens": 8}) == 17


@pytest.mark.parametrize(
    ("sizes", "operations"),
    [
        # layer by layer, width 16: weights 2·12·16² a token, 4·16 a pair of tokens
        ({"batch": 1, "tokens": 1, "cache": 1}, 24 * 256 + 64 * 2),
        ({"batch": 2, "tokens": 3, "cache": 5}, 2 * 3 * (24 * 256 + 64 * (3 + 5))),
    ],
)
def test_attention_work_counts_the_operations_of_a_layer(
    sizes: dict[str, int], operations: int
) -> None:
    work = attention_work("batch", "tokens", width=16, cache="cache")
    assert work.at(sizes) * 24 * 256 == pytest.approx(operations)


def test_memory_is_bytes_per_element_beside_the_fixed_ones() -> None:
    memory = MemoryModel(linear_work(("batch", "tokens")), 2.5, fixed_bytes=100)
    assert memory.over(("batch", "tokens"), np.array([[1, 1], [2, 3]])).tolist() == [103, 115]


@pytest.mark.parametrize("terms", [
    (), (Term(0.0, ()),), (Term(-1.0, ()),), (Term(math.inf, ()),), (Term(1.0, (("a", -1.0),)),),
    (Term(math.nan, ()),), (Term(1.0, (("a", math.nan),)),),
])  # fmt: skip
def test_a_formula_that_does_not_grow_is_refused(terms: tuple[Term, ...]) -> None:
    with pytest.raises(BadInput):
        ShapeFormula(terms)


def test_a_formula_of_other_dimensions_is_refused() -> None:
    with pytest.raises(BadInput):
        linear_work(("tokens",)).at({"batch": 3})
    with pytest.raises(BadInput):
        attention_work("batch", "tokens", width=0)
    with pytest.raises(BadInput):
        MemoryModel(linear_work(("tokens",)), 0)


@pytest.mark.parametrize("profile", [{"batch": 2}, {"batch": 8, "tokens": 1}])
def test_padding_to_a_profile_that_does_not_cover_is_refused(profile: dict[str, int]) -> None:
    with pytest.raises(BadInput):
        padded_work(linear_work(("batch",)), {"batch": 3}, profile)
