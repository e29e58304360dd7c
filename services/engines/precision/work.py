"""Counts what an encoder multiplies, layer by layer, for one item."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from services.engines.backends.openvino.probe import library
from validators.precision.bandwidth import Layer

_CONVOLUTIONS = ("Convolution", "GroupConvolution")


def count_layers(onnx_path: Path, shapes: Mapping[str, tuple[int, ...]]) -> tuple[Layer, ...]:
    """Convolutions and matrix products of the model at these input shapes, batch of one.

    OpenVINO's shape inference is used, since the exporter leaves sizes that are computed. What
    lies between (activations, norms, softmax) is not counted: compilers fuse most of it.

    Raises:
        Unavailable: OpenVINO is not here.
    """
    ov = library()
    model = ov.Core().read_model(str(onnx_path))
    model.reshape({name: list(shape) for name, shape in shapes.items()})
    constant = _constants(model)
    return tuple(
        _layer(op, constant)
        for op in model.get_ordered_ops()
        if op.get_type_name() in (*_CONVOLUTIONS, "MatMul")
    )


def _constants(model: Any) -> frozenset[str]:
    """Names of the nodes that no input of the model reaches."""
    found: set[str] = set()
    for op in model.get_ordered_ops():
        sources = [item.get_source_output().get_node().get_name() for item in op.inputs()]
        if op.get_type_name() == "Constant" or (sources and found.issuperset(sources)):
            found.add(op.get_name())
    return frozenset(found)


def _layer(op: Any, constant: frozenset[str]) -> Layer:
    sizes = [math.prod(item.get_shape()) for item in op.inputs()]
    out = math.prod(op.output(0).get_shape())
    fixed = [item.get_source_output().get_node().get_name() in constant for item in op.inputs()]
    weights = sum(size for size, is_fixed in zip(sizes, fixed, strict=True) if is_fixed)
    moving = sum(size for size, is_fixed in zip(sizes, fixed, strict=True) if not is_fixed)
    return Layer(op.get_friendly_name(), weights, out * _depth(op), moving + out)


def _depth(op: Any) -> int:
    """Multiply-adds for one element of the output."""
    if op.get_type_name() == "MatMul":
        shape = list(op.input(0).get_shape())
        turned = bool(op.get_attributes().get("transpose_a", False))
        return int(shape[-2] if turned and len(shape) > 1 else shape[-1])
    kernel = list(op.input(1).get_shape())
    leading = 2 if op.get_type_name() == "GroupConvolution" else 1
    return math.prod(int(size) for size in kernel[leading:])
