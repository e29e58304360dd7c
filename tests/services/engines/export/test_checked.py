from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from services.engines.export.checked import check_encoder, nonfinite_problem
from tests.services.engines.models import IMAGE, IMAGE_PROFILES
from tests.services.engines.onnx_models import image_model
from validators.contracts.encoder import EncoderContract
from validators.contracts.errors import BadInput, Unsupported
from validators.contracts.tensors import DType


def _with_output(output: str, **changes: Any) -> EncoderContract:
    outputs = tuple(
        dataclasses.replace(spec, **changes) if spec.name == output else spec
        for spec in IMAGE.outputs
    )
    return dataclasses.replace(IMAGE, outputs=outputs)


def _check(model: onnx.ModelProto, contract: EncoderContract = IMAGE) -> bytes:
    return check_encoder(model, contract, IMAGE_PROFILES)


def test_a_sound_model_passes_and_keeps_its_bytes() -> None:
    assert _check(image_model()) == _check(image_model())


def test_a_custom_operator_is_refused_with_its_name_and_node() -> None:
    custom = helper.make_node(
        "Sparkle", ["features"], ["unused"], name="shiny", domain="com.example"
    )
    model = image_model(extra_nodes=[custom])
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    with pytest.raises(Unsupported) as caught:
        _check(model)
    assert "com.example::Sparkle" in caught.value.what
    assert "shiny" in caught.value.where
    assert caught.value.remedy


def test_a_custom_operator_inside_a_branch_is_found() -> None:
    inner = helper.make_graph(
        [helper.make_node("Sparkle", ["features"], ["one"], name="deep", domain="com.example")],
        "then",
        [],
        [helper.make_tensor_value_info("one", TensorProto.FLOAT, None)],
    )
    plain = helper.make_graph(
        [helper.make_node("Identity", ["features"], ["two"])],
        "else",
        [],
        [helper.make_tensor_value_info("two", TensorProto.FLOAT, None)],
    )
    truth = helper.make_node(
        "Constant", [], ["yes"], value=helper.make_tensor("yes", TensorProto.BOOL, [], [True])
    )
    branch = helper.make_node("If", ["yes"], ["either"], then_branch=inner, else_branch=plain)
    with pytest.raises(Unsupported, match="deep"):
        _check(image_model(extra_nodes=[truth, branch]))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused_by_tensor_name(value: float) -> None:
    weight = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)
    weight[1, 2] = value
    with pytest.raises(BadInput) as caught:
        _check(image_model(weight=weight))
    assert caught.value.where == "weight"


@pytest.mark.parametrize(
    ("values", "fine"),
    [
        ([0.5, -2.0], True),
        ([-np.inf], True),
        ([[0.0, -np.inf], [0.0, 0.0]], True),
        ([1.0, 0.0, -np.inf], True),
        ([0.3, -np.inf], False),
        ([np.nan, 0.0], False),
    ],
)
def test_infinity_is_let_through_in_masks_only(values: Any, fine: bool) -> None:
    for dtype in (np.float16, np.float32, np.float64):
        assert (nonfinite_problem(np.array(values, dtype)) is None) is fine


def test_a_graph_that_assigns_a_name_twice_is_refused() -> None:
    twice = helper.make_node("Relu", ["flat"], ["features"], name="again")
    with pytest.raises(BadInput, match="checker"):
        _check(image_model(extra_nodes=[twice]))


@pytest.mark.parametrize(
    ("contract", "named"),
    [
        (_with_output("features", name="vectors"), "vectors"),
        (_with_output("features", dtype=DType.INT64), "features"),
        (_with_output("features", shape=("batch", 9)), "features"),
        (_with_output("features", shape=("batch", 8, 1)), "features"),
        (dataclasses.replace(IMAGE, outputs=IMAGE.outputs[:1]), "logits"),
        (
            dataclasses.replace(
                IMAGE, inputs=(dataclasses.replace(IMAGE.inputs[0], name="frames"),)
            ),
            "frames",
        ),
        (
            dataclasses.replace(
                IMAGE, inputs=(dataclasses.replace(IMAGE.inputs[0], dtype=DType.UINT8),)
            ),
            "pixels",
        ),
    ],
)
def test_a_contract_that_differs_from_the_graph_is_refused(
    contract: EncoderContract, named: str
) -> None:
    profiles = IMAGE_PROFILES
    if named == "frames":
        item = dataclasses.replace(profiles[0].ranges[0], tensor="frames")
        profiles = (dataclasses.replace(profiles[0], ranges=(item,)),)
    with pytest.raises(BadInput) as caught:
        check_encoder(image_model(), contract, profiles)
    assert named in caught.value.where + caught.value.what
    assert caught.value.remedy


def _lying_model() -> onnx.ModelProto:
    """Its output is declared per image, and computed as one row whatever comes in.

    The row count is computed from the pixels, so that no shape inference can see it.
    """
    model = image_model(features_shape=["rows", "columns"])
    for node in model.graph.node:
        if node.name == "project":
            node.output[0] = "honest"
        if node.name == "classify":
            node.input[0] = "honest"
    zero = helper.make_tensor("zero", TensorProto.FLOAT, [1], [0.0])
    shape = helper.make_tensor("shape", TensorProto.FLOAT, [2], [1.0, -1.0])
    model.graph.initializer.extend([zero, shape])
    model.graph.node.extend(
        [
            helper.make_node("ReduceSum", ["floats"], ["sum"], keepdims=0),
            helper.make_node("Mul", ["sum", "zero"], ["nothing"]),
            helper.make_node("Add", ["nothing", "shape"], ["float_shape"]),
            helper.make_node("Cast", ["float_shape"], ["row"], to=TensorProto.INT64),
            helper.make_node("Reshape", ["honest", "row"], ["features"]),
        ]
    )
    return model


def test_an_output_contract_that_lies_is_caught_by_running_the_model() -> None:
    with pytest.raises(BadInput) as caught:
        _check(_lying_model())
    assert "features" in caught.value.where
    assert "does not hold when run" in caught.value.what


def test_a_model_that_answers_nan_is_refused() -> None:
    model = image_model()
    for node in model.graph.node:
        if node.name == "classify":
            node.input[0] = "logarithm"
    log = helper.make_node("Log", ["features"], ["logarithm"])
    model.graph.node.insert(4, log)
    with pytest.raises(BadInput, match="NaN"):
        _check(model)
