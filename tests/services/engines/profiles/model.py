"""A small text encoder in ONNX: masked attention, mean pooling over what the mask keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from services.engines.tensors import Arrays
from validators.contracts.ports import Tensors
from validators.contracts.tensors import DType, Meaning, TensorSpec

VOCABULARY, WIDTH = 50, 8
INPUTS = (
    TensorSpec("ids", DType.INT64, ("batch", "tokens"), Meaning.TOKEN_IDS, value_range=(0, 49)),
    TensorSpec("mask", DType.INT64, ("batch", "tokens"), Meaning.ATTENTION_MASK),
)
OUTPUTS = (
    TensorSpec("embedding", DType.FP32, ("batch", WIDTH), Meaning.GLOBAL_EMBEDDING, space="tiny"),
    TensorSpec("features", DType.FP32, ("batch", "tokens", WIDTH), Meaning.TOKEN_FEATURES),
)


def text_model() -> onnx.ModelProto:
    """ids, mask [batch, tokens] → embedding [batch, 8], features [batch, tokens, 8]."""
    generator = np.random.default_rng(7)
    constants: dict[str, np.ndarray[Any, Any]] = {
        "table": generator.normal(size=(VOCABULARY, WIDTH)).astype(np.float32),
        "swap": (generator.normal(size=(WIDTH, WIDTH)) / 3).astype(np.float32),
        "one": np.array(1, np.float32),
        "large": np.array(1e9, np.float32),
        "axis1": np.array([1], np.int64),
        "axis2": np.array([2], np.int64),
    }
    node = helper.make_node
    nodes = [
        node("Gather", ["table", "ids"], ["words"]),
        node("Transpose", ["words"], ["turned"], perm=[0, 2, 1]),
        node("MatMul", ["words", "swap"], ["keys"]),
        node("MatMul", ["keys", "turned"], ["raw"]),
        node("Cast", ["mask"], ["kept"], to=TensorProto.FLOAT),
        node("Sub", ["one", "kept"], ["dropped"]),
        node("Unsqueeze", ["dropped", "axis1"], ["dropped_row"]),
        node("Mul", ["dropped_row", "large"], ["penalty"]),
        node("Sub", ["raw", "penalty"], ["scores"]),
        node("Softmax", ["scores"], ["weights"], axis=-1),
        node("MatMul", ["weights", "words"], ["mixed"]),
        node("Add", ["mixed", "words"], ["features"]),
        node("Unsqueeze", ["kept", "axis2"], ["kept_column"]),
        node("Mul", ["features", "kept_column"], ["counted"]),
        node("ReduceSum", ["counted", "axis1"], ["summed"], keepdims=0),
        node("ReduceSum", ["kept_column", "axis1"], ["many"], keepdims=0),
        node("Div", ["summed", "many"], ["embedding"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "tiny-text",
        [value(spec.name, TensorProto.INT64, list(spec.shape)) for spec in INPUTS],
        [value(spec.name, TensorProto.FLOAT, list(spec.shape)) for spec in OUTPUTS],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return model


def make_runner() -> Callable[[Tensors], Arrays]:
    """The model in ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        text_model().SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [spec.name for spec in OUTPUTS]
    return lambda feeds: dict(zip(names, session.run(names, dict(feeds)), strict=True))
