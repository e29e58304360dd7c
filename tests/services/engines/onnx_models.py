"""Small ONNX files made by hand, good and bad."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def image_model(
    *,
    weight: np.ndarray[Any, Any] | None = None,
    extra_nodes: Sequence[onnx.NodeProto] = (),
    features_shape: Sequence[int | str] = ("batch", 8),
    pixels_type: int = TensorProto.FLOAT,
    logits_name: str = "logits",
) -> onnx.ModelProto:
    """pixels [batch,3,16,16] → features [batch,8], logits [batch,4]."""
    if weight is None:
        weight = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)
    head = np.linspace(1, -1, 32, dtype=np.float32).reshape(8, 4)
    nodes = [
        helper.make_node("Cast", ["pixels"], ["floats"], to=TensorProto.FLOAT, name="cast"),
        helper.make_node("GlobalAveragePool", ["floats"], ["pooled"], name="pool"),
        helper.make_node("Flatten", ["pooled"], ["flat"], name="flatten"),
        helper.make_node("MatMul", ["flat", "weight"], ["features"], name="project"),
        helper.make_node("MatMul", ["features", "head"], [logits_name], name="classify"),
        *extra_nodes,
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "tiny",
        [value("pixels", pixels_type, ["batch", 3, 16, 16])],
        [
            value("features", TensorProto.FLOAT, list(features_shape)),
            value(logits_name, TensorProto.FLOAT, ["batch", 4]),
        ],
        [numpy_helper.from_array(weight, "weight"), numpy_helper.from_array(head, "head")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def save(model: onnx.ModelProto, path: Path) -> Path:
    path.write_bytes(model.SerializeToString())
    return path
