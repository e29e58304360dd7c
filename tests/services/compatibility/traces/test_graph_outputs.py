"""What lies between the nodes of a graph, on ONNX Runtime and OpenVINO alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from services.compatibility.traces import files
from services.compatibility.traces.onnx_outputs import trace_onnx
from services.compatibility.traces.openvino_outputs import trace_openvino
from services.engines.host import this_host
from tests.services.compatibility.stack_onnx import items, model, stack
from validators.compatibility.layer_drift import measure_drifts
from validators.compatibility.layers import DriftLimits, Trace, first_divergence
from validators.contracts.engine import Precision
from validators.contracts.errors import Refused, Unsupported

HAS_HALVES = "avx512_fp16" in this_host().features or "amx_fp16" in this_host().features


def on_onnxruntime(model: onnx.ModelProto) -> Trace:
    return trace_onnx(model, items())


def on_openvino(model: onnx.ModelProto) -> Trace:
    return trace_openvino(model.SerializeToString(), items(), Precision.FP32)


@pytest.mark.parametrize("trace", [on_onnxruntime, on_openvino])
@pytest.mark.parametrize(
    ("fault", "first"),
    [
        ({"scale": {1: 1.4}}, {"product_1", "relu_1"}),
        ({"epsilon": {2: 0.5}}, {"norm_2"}),
    ],
)
def test_the_first_node_that_parts_is_named(trace, fault, first) -> None:  # type: ignore[no-untyped-def]
    drifts = measure_drifts(trace(stack()), trace(stack(**fault)))
    found = first_divergence(drifts, DriftLimits())
    assert found is not None and found.first.new in first
    assert found.last_agreeing is not None


def test_both_runtimes_see_the_same_numbers() -> None:
    ours = {layer.name: layer for layer in on_onnxruntime(stack()).layers}
    theirs = {layer.name: layer for layer in on_openvino(stack()).layers}
    shared = ours.keys() & theirs.keys()
    assert {"norm_0", "relu_1", "join_2"} <= shared | {"vector"}
    for name in shared:
        assert theirs[name].item_norm == pytest.approx(ours[name].item_norm, rel=1e-4)


def test_groups_bound_memory_and_change_nothing() -> None:
    whole, parts = trace_onnx(stack(), items()), trace_onnx(stack(), items(), group_bytes=200)
    assert parts.layers == whole.layers
    assert np.array_equal(parts.sketches, whole.sketches)


def test_groups_on_openvino_change_nothing() -> None:
    data = stack().SerializeToString()
    whole = trace_openvino(data, items(), Precision.FP32)
    parts = trace_openvino(data, items(), Precision.FP32, group_bytes=300)
    assert [layer.name for layer in parts.layers] == [layer.name for layer in whole.layers]
    for ours, theirs in zip(parts.layers, whole.layers, strict=True):
        assert ours.item_norm == pytest.approx(theirs.item_norm, rel=1e-4)


def test_key_layers_of_a_graph_are_norms_joins_and_outputs() -> None:
    for made in (stack(), stack(written_out=True)):
        key = [layer.name for layer in on_onnxruntime(made).layers if layer.key]
        norms = (
            ["unit_0", "unit_1", "unit_2"] if made != stack() else ["norm_0", "norm_1", "norm_2"]
        )
        assert set(key) == {*norms, "join_0", "join_1", "join_2", "vector"}


def overflowing(dtype: type[np.floating]) -> onnx.ModelProto:  # type: ignore[type-arg]
    """×1e5, then bounded: finite at the end whatever happened in the middle."""
    weights = [
        onnx.numpy_helper.from_array(np.array(value, dtype), name)
        for name, value in (("far", 6e4), ("low", -1.0), ("high", 1.0))
    ]
    nodes = [
        helper.make_node("Mul", ["features", "far"], ["raised"]),
        helper.make_node("Mul", ["raised", "far"], ["raised_again"]),
        helper.make_node("Clip", ["raised_again", "low", "high"], ["vector"]),
    ]
    return model(nodes, weights, dtype)


def test_onnx_runtime_says_that_it_did_not_compute_in_half() -> None:
    trace = trace_onnx(overflowing(np.float16), items(dtype=np.float16))
    assert (trace.precision, trace.computed_in) == (Precision.FP16, Precision.FP32)
    assert not trace.genuine


def test_openvino_traces_halves_only_where_the_cpu_has_them() -> None:
    data = overflowing(np.float32).SerializeToString()
    half = trace_openvino(data, items(), Precision.FP16)
    if not HAS_HALVES:
        assert not half.ran and half.computed_in is None
        assert half.note.startswith("not run here")
    with pytest.raises(Unsupported):
        trace_openvino(data, items(), Precision.INT8)


@pytest.mark.skipif("avx512_bf16" not in this_host().features, reason="no bf16 on this CPU")
def test_openvino_computes_bf16_for_real() -> None:
    data = stack().SerializeToString()
    full = trace_openvino(data, items(), Precision.FP32)
    brain = trace_openvino(data, items(), Precision.BF16)
    assert brain.genuine
    gaps = [drift.relative or 0.0 for drift in measure_drifts(full, brain)]
    assert 1e-4 < max(gaps) < 0.03


def test_a_graph_that_does_not_run_is_a_note() -> None:
    wrong = [{"features": np.zeros((1, 3), np.float32)}]
    assert "does not run it" in trace_onnx(stack(), wrong).note
    assert "does not run it" in trace_openvino(
        stack().SerializeToString(), wrong, Precision.FP32
    ).note  # fmt: skip


def test_a_trace_survives_its_file(tmp_path: Path) -> None:
    trace = on_onnxruntime(stack())
    files.save_trace(tmp_path / "t.npz", trace)
    again = files.load_trace(tmp_path / "t.npz")
    assert again == trace
    assert np.array_equal(again.sketches, trace.sketches)
    with (tmp_path / "u.npz").open("wb") as stream:
        np.savez(stream, head=np.frombuffer(b"{}", np.uint8), sketches=np.zeros(1))
    with pytest.raises(Refused):
        files.load_trace(tmp_path / "u.npz")
