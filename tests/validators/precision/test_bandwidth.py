from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.contracts.engine import Precision
from validators.precision.bandwidth import (
    LAYOUTS,
    Layer,
    Roofs,
    WeightLayout,
    bound_throughput,
    crossover_batch,
    moved_bytes,
    predict_ms,
    useful_share,
)
from validators.precision.layouts import (
    FP16,
    REPORTED_THROUGHPUT,
    REPORTED_USEFUL,
    counted_twice,
    held_for,
    matching_both,
    matching_useful,
    search_layouts,
    throughput_range,
    unpack_for,
)

layouts = st.builds(
    WeightLayout,
    st.just("any"),
    st.sampled_from([2, 4, 8, 16, 32]),
    st.sampled_from([8, 16, 32, 64, 128]),
    st.sampled_from([0.0, 0.5, 1.0, 2.0, 4.0]),
    st.sampled_from([0.0, 0.5, 1.0, 2.0, 4.0]),
    st.sampled_from([1, 8, 16, 64]),
    st.booleans(),
    st.booleans(),
)


@given(layouts, st.sampled_from([32, 64, 128]))
def test_memory_never_moves_less_than_what_is_wanted(layout: WeightLayout, line: int) -> None:
    assert 0 < useful_share(layout, line) <= 1 + 1e-12


@given(layouts)
def test_larger_transactions_never_move_less(layout: WeightLayout) -> None:
    assert moved_bytes(layout, 32) <= moved_bytes(layout, 64) <= moved_bytes(layout, 128)


@given(layouts)
def test_reading_blocks_alone_never_moves_less_than_streaming_them(layout: WeightLayout) -> None:
    streamed = dataclasses.replace(layout, alone=False, slot_bytes=1)
    alone = dataclasses.replace(layout, alone=True)
    assert moved_bytes(alone) >= moved_bytes(streamed) * (1 - 1e-12)


@given(layouts, st.sampled_from([32, 64, 128]))
def test_throughput_over_fp16_is_twice_the_useful_share_over_the_bytes_held(
    layout: WeightLayout, line: int
) -> None:
    identity = 2 * useful_share(layout, line) / layout.held_bytes
    assert bound_throughput(layout, FP16, line) == pytest.approx(identity)


@given(layouts)
def test_lines_touched_agree_with_walking_over_memory(layout: WeightLayout) -> None:
    """The average over one period, beside a walk over the first blocks in half bytes."""
    alone = dataclasses.replace(layout, alone=True, planar=False)
    size = round(2 * (alone.value_bytes + alone.scale_bytes + alone.zero_bytes))
    stride = size if alone.slot_bytes == 1 else math.ceil(size / 2 / alone.slot_bytes) * (
        2 * alone.slot_bytes
    )  # fmt: skip
    blocks = 128  # a multiple of every period here
    lines = sum(
        len({half // 128 for half in range(at * stride, at * stride + size)})
        for at in range(blocks)
    )
    assert moved_bytes(alone) == pytest.approx(64 * lines / blocks / alone.block)


@pytest.mark.parametrize(
    ("layout", "moved", "useful"),
    [
        (LAYOUTS[Precision.FP32], 4.0, 1.0),
        (LAYOUTS[Precision.BF16], 2.0, 1.0),
        (LAYOUTS[Precision.INT8], 1.0, 1.0),
        (LAYOUTS[Precision.INT4], 18 / 32, 1.0),
        (WeightLayout("padded", 4, 32, 2, 2, slot_bytes=64), 2.0, 20 / 64),
        (WeightLayout("packed, alone", 4, 32, 2, 2, alone=True), 2.5, 0.25),
        (WeightLayout("planar, alone", 4, 32, 2, 2, planar=True, alone=True), 6.0, 20 / 192),
    ],
)
def test_what_a_layout_moves(layout: WeightLayout, moved: float, useful: float) -> None:
    assert moved_bytes(layout) == pytest.approx(moved)
    assert useful_share(layout) == pytest.approx(useful)


ROOFS = Roofs(10e9, ((Precision.FP32, 100e9), (Precision.BF16, 250e9)), unpack_per_s=1e9)
LARGE = Layer("product", 4096 * 4096, 4096 * 4096, 2 * 4096)


def test_one_row_is_bound_by_memory_and_many_by_arithmetic() -> None:
    def ratio(batch: int) -> float:
        wide = predict_ms([LARGE], Precision.FP32, batch, ROOFS)
        return predict_ms([LARGE], Precision.BF16, batch, ROOFS) / wide

    assert ratio(1) == pytest.approx(0.5)
    assert ratio(4096) == pytest.approx(100 / 250)


@given(st.integers(1, 512), st.sampled_from(list(Precision)))
def test_a_larger_batch_never_takes_less_time(batch: int, precision: Precision) -> None:
    once = predict_ms([LARGE], precision, batch, ROOFS)
    assert once <= predict_ms([LARGE], precision, batch + 1, ROOFS)


def test_where_unpacking_is_slow_narrow_weights_lose() -> None:
    free = dataclasses.replace(ROOFS, unpack_per_s=math.inf)
    wide = predict_ms([LARGE], Precision.BF16, 1, ROOFS)
    assert predict_ms([LARGE], Precision.INT4, 1, free) < wide
    assert predict_ms([LARGE], Precision.INT4, 1, ROOFS) > wide
    assert crossover_batch(Precision.INT4, ROOFS) == 0


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.BF16])
def test_at_the_crossover_both_roofs_are_as_high(precision: Precision) -> None:
    rows = crossover_batch(precision, ROOFS)
    memory = moved_bytes(LAYOUTS[precision]) / ROOFS.bytes_per_s
    assert 2 * rows / ROOFS.flops(precision) == pytest.approx(memory)


def test_a_width_without_a_measured_rate_multiplies_as_fp32() -> None:
    assert ROOFS.flops(Precision.INT8) == ROOFS.flops(Precision.FP32)


def test_the_reported_useful_share_is_a_block_of_twenty_bytes_in_a_line() -> None:
    found = [item.layout for item in matching_useful()]
    assert any(
        (one.block, one.value_bytes, one.scale_bytes, one.zero_bytes, one.slot_bytes)
        == (32, 16, 2, 2, 64)
        for one in found
    )
    assert all(item.useful == REPORTED_USEFUL for item in matching_useful())


def test_no_layout_gives_the_reported_throughput_with_it() -> None:
    assert matching_both() == ()
    assert min(item.throughput for item in matching_useful()) == 0.5
    usual = [item for item in matching_useful() if item.layout.block >= 32]
    assert {item.throughput for item in usual} == {1.0}
    assert not [
        item for item in search_layouts() if abs(item.throughput - REPORTED_THROUGHPUT) <= 0.005
    ]


def test_both_figures_need_more_metadata_than_any_format_has() -> None:
    held = held_for(REPORTED_USEFUL, REPORTED_THROUGHPUT)
    assert held - 0.5 > 1.0  # bytes of metadata for half a byte of value
    assert throughput_range(REPORTED_USEFUL, 4 / 32) == (1.0, 1.25)


def test_what_would_reproduce_the_reported_throughput() -> None:
    assert counted_twice(REPORTED_USEFUL) == 0.390625
    assert unpack_for(REPORTED_THROUGHPUT, 1e12) == pytest.approx(0.195e12)
