"""An ONNX graph with its links: who makes a value, who reads it, what is constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

Array = npt.NDArray[Any]

NORM_OPERATORS = {
    "LayerNormalization": "LayerNorm",
    "BatchNormalization": "BatchNorm",
    "InstanceNormalization": "InstanceNorm",
    "GroupNormalization": "GroupNorm",
    "RMSNormalization": "RMSNorm",
}
"""Operators with an `epsilon` attribute, 1e-5 where it is not given."""


class GraphLinks:
    """The main graph of a model. Values that no node computes from an input are constant."""

    def __init__(self, model: onnx.ModelProto) -> None:
        graph = model.graph
        self.nodes: Sequence[onnx.NodeProto] = list(graph.node)
        self.outputs = [item.name for item in graph.output]
        self._initialisers = {tensor.name: tensor for tensor in graph.initializer}
        self._makers: dict[str, onnx.NodeProto] = {}
        self._readers: dict[str, list[onnx.NodeProto]] = {}
        inputs = {item.name for item in graph.input} - self._initialisers.keys()
        self.computed = set(inputs)
        for node in self.nodes:
            for name in node.input:
                self._readers.setdefault(name, []).append(node)
            for name in node.output:
                self._makers[name] = node
            if any(name in self.computed for name in node.input) or _has_body(node):
                self.computed.update(name for name in node.output if name)

    def maker(self, value: str) -> onnx.NodeProto | None:
        return self._makers.get(value)

    def readers(self, value: str) -> list[onnx.NodeProto]:
        return self._readers.get(value, [])

    def constant(self, value: str) -> Array | None:
        """The array behind an initialiser, a Constant node or an Identity or Cast of one."""
        tensor = self._initialisers.get(value)
        if tensor is not None:
            return numpy_helper.to_array(tensor)
        node = self._makers.get(value)
        if node is None:
            return None
        if node.op_type == "Constant":
            return _constant_of(node)
        if node.op_type in ("Identity", "Cast", "Unsqueeze", "Reshape") and node.input:
            return self.constant(node.input[0])
        return None

    def scalar(self, value: str) -> float | None:
        """The one number of a constant, or None."""
        array = self.constant(value)
        if array is None or array.size != 1 or array.dtype.kind not in "fiu":
            return None
        return float(array.reshape(-1)[0])

    def numbers(self, value: str) -> list[int] | None:
        """The whole numbers of a constant, or None."""
        array = self.constant(value)
        if array is None or array.dtype.kind not in "iu":
            return None
        return [int(number) for number in array.reshape(-1)]


def attribute(node: onnx.NodeProto, name: str, otherwise: Any) -> Any:
    for item in node.attribute:
        if item.name == name:
            return onnx.helper.get_attribute_value(item)
    return otherwise


def _constant_of(node: onnx.NodeProto) -> Array | None:
    for item in node.attribute:
        if item.name == "value":
            return numpy_helper.to_array(item.t)
        if item.name in ("value_float", "value_floats", "value_int", "value_ints"):
            return np.asarray(onnx.helper.get_attribute_value(item))
    return None


def _has_body(node: onnx.NodeProto) -> bool:
    """If, Loop, Scan: what their graphs read from outside is not among their inputs."""
    return any(item.HasField("g") or item.graphs for item in node.attribute)
