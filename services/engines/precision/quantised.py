"""Int8 by static Q/DQ: symmetric activations per tensor, symmetric weights per channel.

ONNX Runtime's own quantiser places the pairs; limits come from `observe`, so that one calibration
serves every candidate. Symmetric and with float biases, because TensorRT takes nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationMethod, QuantType
from onnxruntime.quantization.calibrate import TensorsData
from onnxruntime.quantization.qdq_quantizer import QDQQuantizer

OPERATORS = ("Conv", "Gemm", "MatMul")
_OPTIONS = {
    "ActivationSymmetric": True,
    "WeightSymmetric": True,
    "QuantizeBias": False,
    # Products keep their float results: a quantised residual stream costs most of the accuracy.
    "OpTypesToExcludeOutputQuantization": ["Gemm", "MatMul"],
}


def quantisable(model: onnx.ModelProto) -> tuple[str, ...]:
    """The names of the nodes that can be quantised, in the graph's order."""
    return tuple(node.name for node in model.graph.node if node.op_type in OPERATORS)


def calibrated_values(model: onnx.ModelProto) -> tuple[str, ...]:
    """The values whose limits `quantise` needs."""
    names = [
        name
        for node in model.graph.node
        if node.op_type in OPERATORS
        for name in (*node.input[:2], *node.output)
    ]
    return tuple(dict.fromkeys(names))


def quantise(
    model: onnx.ModelProto, layers: Sequence[str], limits: Mapping[str, float]
) -> onnx.ModelProto:
    """A copy of the model with these nodes quantised; magnitudes above a value's limit saturate.

    Nodes and values need names of their own.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    ranges = {name: (np.float32(-limit), np.float32(limit)) for name, limit in limits.items()}
    quantiser = QDQQuantizer(
        copy,
        per_channel=True,
        reduce_range=False,
        weight_qType=QuantType.QInt8,
        activation_qType=QuantType.QInt8,
        tensors_range=TensorsData(CalibrationMethod.MinMax, ranges),
        nodes_to_quantize=list(layers),
        nodes_to_exclude=[],
        op_types_to_quantize=list(OPERATORS),
        extra_options=_OPTIONS,
    )
    quantiser.quantize_model()
    quantiser.model.topological_sort()
    made: onnx.ModelProto = quantiser.model.model
    return made
