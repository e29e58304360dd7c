from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from services.engines.precision.work import count_layers
from tests.services.engines.onnx_models import save


def model() -> onnx.ModelProto:
    """x [batch,4,8,8] → a grouped convolution → its product with itself → a matrix product."""
    value, node = helper.make_tensor_value_info, helper.make_node
    draw = np.random.default_rng(0)
    kernel = draw.normal(size=(6, 2, 3, 3)).astype(np.float32)
    matrix = draw.normal(size=(6, 5)).astype(np.float32)
    nodes = [
        node("Conv", ["x", "kernel"], ["c"], group=2, pads=[1, 1, 1, 1]),
        node("MatMul", ["c", "c"], ["square"]),
        node("Transpose", ["square"], ["t"], perm=[0, 2, 3, 1]),
        node("MatMul", ["t", "matrix"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "three",
        [value("x", TensorProto.FLOAT, ["batch", 4, 8, 8])],
        [value("y", TensorProto.FLOAT, ["batch", 8, 8, 5])],
        [numpy_helper.from_array(kernel, "kernel"), numpy_helper.from_array(matrix, "matrix")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def test_layers_are_counted_with_their_weights_and_multiply_adds(tmp_path: Path) -> None:
    layers = count_layers(save(model(), tmp_path / "m.onnx"), {"x": (1, 4, 8, 8)})
    convolution, product, dense = layers
    assert (convolution.weights, convolution.macs) == (6 * 2 * 9, 6 * 64 * 2 * 9)
    assert convolution.activations == 4 * 64 + 6 * 64
    assert (product.weights, product.macs) == (0, 6 * 8 * 8 * 8)
    assert product.activations == 3 * 6 * 64
    assert (dense.weights, dense.macs) == (6 * 5, 64 * 5 * 6)
