"""Int4 weights in blocks of 32: symmetric, packed, unpacked by DequantizeLinear of opset 21.

ONNX Runtime's own quantiser does the packing. The standard operator, because each backend here
recognises it: OpenVINO keeps the weights packed, ONNX Runtime makes MatMulNBits of it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantFormat
from onnxruntime.quantization.matmul_nbits_quantizer import (
    DefaultWeightOnlyQuantConfig,
    MatMulNBitsQuantizer,
)

from services.engines.precision.prepare import drop_unused

BLOCK = 32
"""Values that share a scale. 128 saves 2 % of the file of a small encoder and doubled its error."""

OPSET = 21

logging.getLogger("onnxruntime.quantization.matmul_nbits_quantizer").setLevel(logging.WARNING)


def packable(model: onnx.ModelProto) -> tuple[str, ...]:
    """The matrix products with a constant matrix of their own, by node name."""
    matrices = {
        item.name
        for item in model.graph.initializer
        if item.data_type == TensorProto.FLOAT and len(item.dims) == 2 and item.dims[0] >= BLOCK
    }
    uses = Counter(name for node in model.graph.node for name in node.input)
    return tuple(
        node.name
        for node in model.graph.node
        if node.op_type == "MatMul" and node.input[1] in matrices and uses[node.input[1]] == 1
    )


def with_products(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose fully connected layers are MatMul and Add, at an opset with four-bit types."""
    copy = onnx.ModelProto()
    copy.CopyFrom(_at_opset(model))
    matrices = {item.name: item for item in copy.graph.initializer}
    nodes: list[onnx.NodeProto] = []
    for node in copy.graph.node:
        nodes.extend(_split(node, matrices, copy.graph))
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    drop_unused(copy.graph)
    return copy


def _split(
    gemm: onnx.NodeProto, matrices: dict[str, onnx.TensorProto], graph: onnx.GraphProto
) -> list[onnx.NodeProto]:
    """Gemm(x, W, b) as Add(MatMul(x, W), b), where W is constant and nothing is scaled."""
    settings = {item.name: helper.get_attribute_value(item) for item in gemm.attribute}
    plain = settings.get("alpha", 1.0) == settings.get("beta", 1.0) == 1.0
    if gemm.op_type != "Gemm" or settings.get("transA") or not plain:
        return [gemm]
    if gemm.input[1] not in matrices:
        return [gemm]
    weight = gemm.input[1]
    if settings.get("transB"):
        turned = numpy_helper.to_array(matrices[weight]).T.copy()
        weight = f"{gemm.name}_weight"
        graph.initializer.append(numpy_helper.from_array(turned, weight))
    if len(gemm.input) < 3 or not gemm.input[2]:
        return [helper.make_node("MatMul", [gemm.input[0], weight], gemm.output, name=gemm.name)]
    product = f"{gemm.name}_product"
    return [
        helper.make_node("MatMul", [gemm.input[0], weight], [product], name=gemm.name),
        helper.make_node("Add", [product, gemm.input[2]], gemm.output, name=f"{gemm.name}_bias"),
    ]


def _at_opset(model: onnx.ModelProto) -> onnx.ModelProto:
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
