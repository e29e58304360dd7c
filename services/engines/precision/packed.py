"""Int4 weights in blocks of 32: symmetric, packed, unpacked by DequantizeLinear of opset 21.

ONNX Runtime's own quantiser does the packing. The standard operator, because each backend here
recognises it: OpenVINO keeps the weights packed, ONNX Runtime makes MatMulNBits of it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

import onnx
from onnx import TensorProto
from onnxruntime.quantization import QuantFormat
from onnxruntime.quantization.matmul_nbits_quantizer import (
    DefaultWeightOnlyQuantConfig,
    MatMulNBitsQuantizer,
)

BLOCK = 32
"""Values that share a scale. 128 saves 2 % of the file of a small encoder and doubled its error."""

OPSET = 21

logging.getLogger("onnxruntime.quantization.matmul_nbits_quantizer").setLevel(logging.WARNING)


def packable(model: onnx.ModelProto) -> tuple[str, ...]:
    """The matrix products with a constant matrix of their own, by node name."""
    matrices = {
        item.name
        for item in model.graph.initializer
        if item.data_type == TensorProto.FLOAT and _in_blocks(item)
    }
    uses = Counter(name for node in model.graph.node for name in node.input)
    return tuple(
        node.name
        for node in model.graph.node
        if node.op_type == "MatMul" and node.input[1] in matrices and uses[node.input[1]] == 1
    )


def _in_blocks(matrix: TensorProto) -> bool:
    """Whole blocks only: not every backend takes a last one that is shorter."""
    return len(matrix.dims) == 2 and matrix.dims[0] > 0 and matrix.dims[0] % BLOCK == 0


def at_opset(model: onnx.ModelProto) -> onnx.ModelProto:
    version = max(item.version for item in model.opset_import if item.domain in ("", "ai.onnx"))
    if version >= OPSET:
        return model
    converted = onnx.version_converter.convert_version(model, OPSET)
    converted.ir_version = max(converted.ir_version, 10)
    return converted


def pack(model: onnx.ModelProto, layers: Sequence[str]) -> onnx.ModelProto:
    """A copy of the model with the weights of these nodes packed."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    chosen = set(layers)
    quantiser = MatMulNBitsQuantizer(
        copy,
        nodes_to_exclude=[node.name for node in model.graph.node if node.name not in chosen],
        algo_config=DefaultWeightOnlyQuantConfig(
            block_size=BLOCK,
            is_symmetric=True,
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=("MatMul",),
        ),
    )
    quantiser.process()
    made: onnx.ModelProto = quantiser.model.model
    return made
