"""A fitted map as an ONNX model: `vector` [batch, D_new] → `adapted` [batch, D_old], unit rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from services.compatibility.adapters.maps import FittedMap

Array = npt.NDArray[Any]

OPSET, IR_VERSION = 20, 10
INPUT, OUTPUT = "vector", "adapted"
_TINY = np.array(1e-12, np.float32)


def to_onnx(found: FittedMap) -> bytes:
    """The model's bytes; the same map gives the same bytes."""
    weights = {name: np.asarray(value, np.float32) for name, value in found.tensors.items()}
    wide, narrow = weights["first"].shape[0], _width(found)
    nodes, mapped = _nodes(found)
    value = helper.make_tensor_value_info
    constants: dict[str, Array] = {**weights, "tiny": _TINY, "last_axis": np.array([1], np.int64)}
    graph = helper.make_graph(
        [*_unit(INPUT, "unit"), *nodes, *_unit(mapped, OUTPUT)],
        f"adapter-{found.kind.value}",
        [value(INPUT, TensorProto.FLOAT, ["batch", wide])],
        [value(OUTPUT, TensorProto.FLOAT, ["batch", narrow])],
        [numpy_helper.from_array(array, name) for name, array in sorted(constants.items())],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
    )
    return bytes(model.SerializeToString(deterministic=True))


def _width(found: FittedMap) -> int:
    last = found.tensors["second" if "second" in found.tensors else "first"]
    return int(last.shape[1])


def _nodes(found: FittedMap) -> tuple[list[onnx.NodeProto], str]:
    """The map's own nodes, and the name of what they end in."""
    steps = [("MatMul", "first")]
    if "second" in found.tensors:
        steps.append(("MatMul", "second"))
    if "bias" in found.tensors:
        steps.append(("Add", "bias"))
    nodes, at = list[onnx.NodeProto](), "unit"
    for kind, weight in steps:
        nodes.append(_node(kind, [at, weight], f"after_{weight}"))
        at = f"after_{weight}"
    if "hidden" not in found.tensors:
        return nodes, at
    nodes += [
        _node("MatMul", ["unit", "hidden"], "inner"),
        _node("Add", ["inner", "hidden_bias"], "inner_biased"),
        _node("Relu", ["inner_biased"], "inner_positive"),
        _node("MatMul", ["inner_positive", "out"], "correction"),
        _node("Add", [at, "correction"], "corrected"),
    ]
    return nodes, "corrected"


def _unit(rows: str, out: str) -> list[onnx.NodeProto]:
    """Rows at length one."""
    length, safe = f"{rows}_length", f"{rows}_safe_length"
    return [
        _node("ReduceL2", [rows, "last_axis"], length, keepdims=1),
        _node("Max", [length, "tiny"], safe),
        _node("Div", [rows, safe], out),
    ]


def _node(kind: str, inputs: list[str], output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs, [output], name=f"make_{output}", **attributes)
