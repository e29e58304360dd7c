"""What the recipes make of small hand-made graphs, in this process."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from services.engines.precision import carried_precision
from services.engines.precision.recipe import bake_precision
from tests.services.engines.models import IMAGE, IMAGE_PROFILES
from tests.services.engines.onnx_models import image_model
from tests.services.engines.precision.inputs import pictures
from validators.contracts.engine import Precision, Tolerance
from validators.contracts.errors import Unsupported

PICTURES = pictures()
HALVES = [Precision.FP16, Precision.BF16]


def _bake(
    model: onnx.ModelProto, precision: Precision, tolerance: Tolerance | None = None
) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    baked = bake_precision(
        model.SerializeToString(), IMAGE, precision, PICTURES,
        profiles=IMAGE_PROFILES, tolerance=tolerance,
    )  # fmt: skip
    return onnx.load_model_from_string(baked.onnx), baked.notes


def _convolution(gain: float = 1.0, *, batch_norm: bool = False) -> onnx.ModelProto:
    """pixels → Conv → (BatchNorm) → Relu → pooled features → logits; `gain` scales the weights."""
    random = np.random.default_rng(0)
    constants = {
        "kernel": random.normal(0, gain, (8, 3, 3, 3)),
        "head": random.normal(0, 1, (8, 4)),
        "down": np.array(1 / gain),
    }
    nodes = [
        helper.make_node("Conv", ["pixels", "kernel"], ["conv"], name="conv"),
        helper.make_node("Relu", ["normed" if batch_norm else "conv"], ["relu"], name="relu"),
        helper.make_node("Mul", ["relu", "down"], ["scaled"], name="down"),
        helper.make_node("GlobalAveragePool", ["scaled"], ["pooled"], name="pool"),
        helper.make_node("Flatten", ["pooled"], ["features"], name="flatten"),
        helper.make_node("MatMul", ["features", "head"], ["logits"], name="classify"),
    ]
    if batch_norm:
        names = ["gamma", "beta", "mean", "variance"]
        constants |= {name: np.full(8, 0.5 + i) for i, name in enumerate(names)}
        nodes.insert(
            1, helper.make_node("BatchNormalization", ["conv", *names], ["normed"], name="norm")
        )
    model = image_model()
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(
        numpy_helper.from_array(array.astype(np.float32), name) for name, array in constants.items()
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def _types(model: onnx.ModelProto) -> dict[str, int]:
    """The element type of each value."""
    graph = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph
    return {
        item.name: item.type.tensor_type.elem_type
        for item in (*graph.input, *graph.value_info, *graph.output)
    }


def _input_types(model: onnx.ModelProto, node: str) -> set[int]:
    types = _types(model) | {item.name: item.data_type for item in model.graph.initializer}
    found = next(item for item in model.graph.node if item.name == node)
    return {types[name] for name in found.input}


@pytest.mark.parametrize("precision", HALVES)
def test_products_are_narrow_and_pooling_and_the_contract_are_not(precision: Precision) -> None:
    model, notes = _bake(_convolution(), precision)
    narrow = TensorProto.FLOAT16 if precision is Precision.FP16 else TensorProto.BFLOAT16
    assert carried_precision(model) is precision
    assert _input_types(model, "conv") == _input_types(model, "classify") == {narrow}
    assert _input_types(model, "pool") == {TensorProto.FLOAT}
    types = _types(model)
    assert types["pixels"] == types["features"] == types["logits"] == TensorProto.FLOAT
    assert notes[0].endswith(f"nodes compute in {precision.value}, 2 products")


def test_what_leaves_the_range_of_fp16_stays_in_fp32_and_bf16_takes_it() -> None:
    """The convolution's sums go over 65,504 for these pictures and come down again."""
    model, notes = _bake(_convolution(gain=1e5), Precision.FP16)
    assert _input_types(model, "conv") == {TensorProto.FLOAT}
    assert _input_types(model, "classify") == {TensorProto.FLOAT16}
    assert any("by their measured range" in note and "Conv conv" in note for note in notes)
    wide, _ = _bake(_convolution(gain=1e5), Precision.BF16)
    assert _input_types(wide, "conv") == {TensorProto.BFLOAT16}


def test_constants_that_fp16_would_flush_to_zero_stay_in_fp32() -> None:
    model, _ = _bake(_convolution(gain=1e-7), Precision.FP16)
    assert _input_types(model, "conv") == {TensorProto.FLOAT}


def test_a_model_whose_every_product_overflows_has_no_fp16() -> None:
    model = image_model(weight=np.full((3, 8), 1e6, np.float32))
    for item in model.graph.initializer:
        item.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(item) * 1e6, item.name))
    with pytest.raises(Unsupported, match="no product or convolution"):
        _bake(model, Precision.FP16)


def test_int8_weights_have_a_scale_per_channel_and_activations_one() -> None:
    model, notes = _bake(_convolution(), Precision.INT8)
    assert carried_precision(model) is Precision.INT8
    constants = {item.name: item for item in model.graph.initializer}
    kinds = Counter(node.op_type for node in model.graph.node)
    assert kinds["QuantizeLinear"] >= 2 and kinds["DequantizeLinear"] >= 4
    for node in model.graph.node:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            assert not numpy_helper.to_array(constants[node.input[2]]).any()  # symmetric
        if node.op_type == "QuantizeLinear":
            assert not constants[node.input[1]].dims
    assert "2 of 2 layers are int8" in notes[0]


def test_batch_norms_are_folded_before_int8() -> None:
    model, _ = _bake(_convolution(batch_norm=True), Precision.INT8)
    assert "BatchNormalization" not in {node.op_type for node in model.graph.node}


def test_no_layer_is_quantised_where_none_holds() -> None:
    with pytest.raises(Unsupported, match="no layer can be int8 within parity: with all 2"):
        _bake(_convolution(), Precision.INT8, Tolerance(max_rel=1e-9, cosine_min=1 - 1e-12))


def test_a_tolerance_between_leaves_some_layers_in_float() -> None:
    model, notes = _bake(_convolution(), Precision.INT8, Tolerance(max_rel=0.0153, cosine_min=0.99))
    assert "1 of 2 layers are int8" in notes[0] and notes[1].startswith("left in float: ")
    assert carried_precision(model) is Precision.INT8


def test_int4_needs_a_matrix_of_some_size() -> None:
    with pytest.raises(Unsupported, match="no layer that int4 is for"):
        _bake(_convolution(), Precision.INT4)


def test_a_model_that_carries_a_precision_is_not_baked_again() -> None:
    model, _ = _bake(_convolution(), Precision.INT8)
    with pytest.raises(Unsupported, match="carries int8 already"):
        _bake(model, Precision.FP16)


@pytest.mark.parametrize("precision", [*HALVES, Precision.INT8])
def test_the_same_inputs_give_the_same_bytes(precision: Precision) -> None:
    first, second = (_bake(_convolution(), precision)[0] for _ in range(2))
    assert first.SerializeToString(deterministic=True) == second.SerializeToString(
        deterministic=True
    )
