from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.compatibility.connection import connect
from validators.contracts.tensors import DType, Meaning, StateKind, TensorSpec, TimeBase

PATCHES = TensorSpec("patches", DType.FP32, ("batch", "n", 768), Meaning.PATCH_FEATURES)
FRAMES = TensorSpec(
    "frames", DType.FP32, ("batch", "t", 384), Meaning.FRAME_FEATURES, time_base=TimeBase("t", 100)
)
EMBEDDING = TensorSpec(
    "embedding", DType.FP32, ("batch", 512), Meaning.GLOBAL_EMBEDDING, space="clip"
)
MINILM = TensorSpec("vector", DType.FP32, ("batch", 384), Meaning.GLOBAL_EMBEDDING, space="minilm")
LOGITS = TensorSpec("logits", DType.FP32, ("batch", "t", 51865), Meaning.LOGITS)


def change(spec: TensorSpec, **changes: object) -> TensorSpec:
    return dataclasses.replace(spec, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("spec", [PATCHES, FRAMES, EMBEDDING, LOGITS], ids=lambda spec: spec.name)
def test_a_tensor_connects_to_itself(spec: TensorSpec) -> None:
    assert connect(spec, spec) == ()


@pytest.mark.parametrize(
    ("producer", "consumer", "code", "adapter"),
    [
        (change(FRAMES, dtype=DType.FP16), FRAMES, "dtype", "Cast FP16→FP32."),
        (FRAMES, change(FRAMES, time_base=TimeBase("t", 25)), "time-base", "100 Hz → 25 Hz"),
        (
            FRAMES,
            change(FRAMES, time_base=TimeBase("t", 100, offset_ms=40)),
            "time-base",
            "Shift by 40 ms.",
        ),
        (change(FRAMES, time_base=None), FRAMES, "time-base", "Declare the time base"),
        (EMBEDDING, MINILM, "space", "Project 512 → 384 into space minilm by a ridge map."),
        (change(EMBEDDING, space=None), EMBEDDING, "space", "into space clip"),
        (change(FRAMES, shape=("batch", "t", 512)), FRAMES, "dimension", "Project 512 → 384"),
        (
            PATCHES,
            change(EMBEDDING, shape=("batch", 768)),
            "meaning",
            "Pool patch_features [batch, n, 768] → global_embedding [batch, 768].",
        ),
        (PATCHES, EMBEDDING, "dimension", "Project 768 → 512 into space clip"),
        (EMBEDDING, PATCHES, "meaning", "from before the pooling"),
        (LOGITS, MINILM, "meaning", "conse"),
        (LOGITS, FRAMES, "meaning", "another output of the encoder"),
        (PATCHES, FRAMES, "meaning", "Learn a connector"),
        (change(PATCHES, shape=("batch", 768)), PATCHES, "rank", "Reshape"),
        (change(PATCHES, shape=(4, "n", 768)), change(PATCHES, shape=(1, "n", 768)),
         "dimension", "Regroup the batch"),
        (change(PATCHES, shape=("batch", "n", 768)), change(PATCHES, shape=("batch", 49, 768)),
         "dimension", "Pad, cut or resample dimension 1 (n → 49)."),
        (change(PATCHES, value_range=(-2, 2)), change(PATCHES, value_range=(-1, 1)),
         "range", "Rescale [-2, 2] → [-1, 1]."),
    ],
)  # fmt: skip
def test_a_mismatch_names_the_adapter_that_fixes_it(
    producer: TensorSpec, consumer: TensorSpec, code: str, adapter: str
) -> None:
    found = {item.code: item.adapter for item in connect(producer, consumer)}
    assert adapter in found[code]


def test_a_named_dimension_takes_whatever_the_producer_has() -> None:
    producer = change(PATCHES, shape=(1, 49, 768))
    assert connect(producer, PATCHES) == ()


def test_one_name_cannot_stand_for_two_sizes() -> None:
    square = change(PATCHES, shape=("batch", "side", "side"))
    (found,) = connect(change(PATCHES, shape=(1, 14, 16)), square)
    assert (found.code, "which is 14 already" in found.wants) == ("dimension", True)


def test_a_cache_keeping_end_does_not_meet_a_stateless_one() -> None:
    (found,) = connect(FRAMES, FRAMES, consumer_state=StateKind.AUTOREGRESSIVE_CACHE)
    assert found.code == "state"
    assert "autoregressive_cache" in found.adapter


specs = st.builds(
    TensorSpec,
    name=st.sampled_from(["a", "b"]),
    dtype=st.sampled_from(DType),
    shape=st.lists(
        st.one_of(st.integers(1, 9), st.sampled_from(["batch", "n", "t"])), max_size=4
    ).map(tuple),
    meaning=st.sampled_from(Meaning),
    space=st.sampled_from([None, "x", "y"]),
    time_base=st.sampled_from([None, TimeBase("t", 25.0), TimeBase("t", 100.0)]),
    value_range=st.sampled_from([None, (0.0, 1.0), (-1.0, 1.0)]),
)


@given(specs)
def test_every_tensor_fits_where_the_same_is_wanted(spec: TensorSpec) -> None:
    assert connect(spec, spec) == ()


@given(specs, specs)
def test_any_pair_is_judged_with_both_ends_and_an_adapter(
    producer: TensorSpec, consumer: TensorSpec
) -> None:
    found = connect(producer, consumer)
    assert all(item.gives and item.wants and item.adapter.endswith(".") for item in found)
    if producer.meaning is not consumer.meaning or producer.dtype is not consumer.dtype:
        assert found
