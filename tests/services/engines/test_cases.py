from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.engines.cases import canary_case, make_cases, ranges
from services.engines.guard import check_feeds
from services.engines.tensors import digest_feeds
from tests.services.engines.models import (
    IMAGE,
    IMAGE_PROFILES,
    TEXT,
    TEXT_PROFILES,
    profile,
)
from validators.contracts.errors import BadInput, TooLarge
from validators.contracts.tensors import DType, Meaning, TensorSpec


def test_every_corner_and_points_between_are_there() -> None:
    cases = make_cases(TEXT.inputs, TEXT_PROFILES, between=3)
    assert [case.name for case in cases] == [
        "profile 0 minimum", "profile 0 optimum", "profile 0 maximum",
        "profile 1 minimum", "profile 1 optimum", "profile 1 maximum",
        "between 0", "between 1", "between 2",
    ]  # fmt: skip


def test_corners_that_coincide_are_run_once() -> None:
    one = profile(("pixels", (1, 3, 16, 16), (1, 3, 16, 16), (2, 3, 16, 16)))
    names = [case.name for case in make_cases(IMAGE.inputs, (one,), between=0)]
    assert names == ["profile 0 minimum", "profile 0 maximum"]


def test_the_generators_definition_is_pinned() -> None:
    digest = digest_feeds([canary_case(TEXT.inputs, TEXT_PROFILES).feeds])
    assert digest == "sha256:5ed9ff8eb1598052dc76e08c8f35a30b76803229cbf05a4f8c9d5d678105f480"


def test_real_inputs_join_and_must_fit_a_profile() -> None:
    fitting = {"pixels": np.zeros((3, 3, 16, 16), np.float32)}
    cases = make_cases(IMAGE.inputs, IMAGE_PROFILES, between=0, real=[fitting])
    assert cases[-1].name == "real 0"
    with pytest.raises(BadInput, match="outside every profile"):
        make_cases(
            IMAGE.inputs, IMAGE_PROFILES, real=[{"pixels": np.zeros((9, 3, 16, 16), np.float32)}]
        )


def test_a_fixed_input_needs_no_range_and_a_named_one_does() -> None:
    fixed = TensorSpec("x", DType.FP32, (2, 3), Meaning.MEL)
    assert ranges([fixed], profile())[0].maximum == (2, 3)
    with pytest.raises(BadInput, match="no profile range"):
        ranges([dataclasses.replace(fixed, shape=("n", 3))], profile())


@pytest.mark.parametrize(
    "bad",
    [
        profile(("pixels", (1, 3, 16), (1, 3, 16), (1, 3, 16))),
        profile(("pixels", (1, 3, 8, 16), (1, 3, 8, 16), (1, 3, 16, 16))),
        profile(("frames", (1, 3, 16, 16), (1, 3, 16, 16), (1, 3, 16, 16))),
    ],
)
def test_a_profile_that_contradicts_the_contract_is_refused(bad: object) -> None:
    with pytest.raises(BadInput):
        make_cases(IMAGE.inputs, (bad,))  # type: ignore[arg-type]


def test_token_ids_without_a_range_are_refused() -> None:
    vague = dataclasses.replace(TEXT.inputs[0], value_range=None)
    with pytest.raises(BadInput, match="token ids"):
        make_cases((vague, TEXT.inputs[1]), TEXT_PROFILES)


def test_a_corner_too_large_for_memory_is_refused() -> None:
    huge = profile(("pixels", (1, 3, 16, 16), (1, 3, 16, 16), (10**9, 3, 16, 16)))
    with pytest.raises(TooLarge):
        make_cases(IMAGE.inputs, (huge,))


@given(
    low=st.integers(1, 4),
    grow=st.integers(0, 5),
    seed=st.integers(0, 2**32),
    top=st.integers(0, 300),
    dtype=st.sampled_from([DType.INT32, DType.INT64]),
)
def test_generated_inputs_are_valid_and_repeatable(
    low: int, grow: int, seed: int, top: int, dtype: DType
) -> None:
    inputs = (
        TensorSpec("ids", dtype, ("b", "t"), Meaning.TOKEN_IDS, value_range=(0, top)),
        TensorSpec("mask", dtype, ("b", "t"), Meaning.ATTENTION_MASK),
        TensorSpec("mel", DType.FP32, ("b", 4), Meaning.MEL, value_range=(-2.0, 0.5)),
        TensorSpec("half", DType.FP16, ("b", 4), Meaning.MEL, value_range=(-0.1, 0.1)),
    )
    shape, wide = (low, low + 1), (low + grow, low + 1 + grow)
    span = profile(
        ("ids", shape, shape, wide), ("mask", shape, shape, wide),
        ("mel", (low, 4), (low, 4), (low + grow, 4)),
        ("half", (low, 4), (low, 4), (low + grow, 4)),
    )  # fmt: skip
    cases = make_cases(inputs, (span,), seed=seed)
    assert digest_feeds([c.feeds for c in cases]) == digest_feeds(
        [c.feeds for c in make_cases(inputs, (span,), seed=seed)]
    )
    for case in cases:
        assert check_feeds(case.feeds, inputs, (span,)) == 0
        assert case.feeds["ids"].min() >= 0 and case.feeds["ids"].max() <= top
        mask = case.feeds["mask"]
        assert set(np.unique(mask)) <= {0, 1}
        assert mask.sum(axis=1).min() >= 1
        assert (np.diff(mask, axis=1) <= 0).all()
        assert case.feeds["mel"].min() >= -2.0 and case.feeds["mel"].max() <= 0.5
