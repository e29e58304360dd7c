"""Which precision an ONNX model carries by itself: strongly typed backends compute in that one."""

from __future__ import annotations

from collections import Counter

import onnx

from services.engines.export.graph import graphs
from validators.contracts.engine import Precision
from validators.contracts.errors import Unsupported

QUANTISED_OPERATORS = frozenset((
    "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger",
    "QLinearMatMul", "QLinearConv",
))  # fmt: skip
_BY_TYPE: dict[int, Precision] = {
    onnx.TensorProto.FLOAT: Precision.FP32,
    onnx.TensorProto.FLOAT16: Precision.FP16,
    onnx.TensorProto.BFLOAT16: Precision.BF16,
}
_FOUR_BITS: frozenset[int] = frozenset({onnx.TensorProto.INT4, onnx.TensorProto.UINT4})


def carried_precision(model: onnx.ModelProto) -> Precision:
    """INT4 or INT8 where the graph is quantised, else the type that most of its weights have."""
    counts: Counter[Precision] = Counter()
    quantised = False
    for graph in graphs(model.graph):
        quantised |= any(node.op_type in QUANTISED_OPERATORS for node in graph.node)
        for tensor in graph.initializer:
            if tensor.data_type in _FOUR_BITS:
                return Precision.INT4
            if tensor.data_type in _BY_TYPE:
                size = 1
                for dim in tensor.dims:
                    size *= dim
                counts[_BY_TYPE[tensor.data_type]] += size
    if quantised:
        return Precision.INT8
    return counts.most_common(1)[0][0] if counts else Precision.FP32


def require_carried(model: onnx.ModelProto, wanted: Precision, backend: str) -> None:
    """Raise Unsupported where a backend that takes precision from the model would give another."""
    carried = carried_precision(model)
    if carried is not wanted:
        raise Unsupported(
            f"{backend} computes in the precision that the model carries: {carried.value}, "
            f"not {wanted.value}",
            where=backend,
            remedy=f"Declare {carried.value}, or convert the ONNX (for fp16: ModelOpt AutoCast) "
            "and declare what it then carries.",
        )
