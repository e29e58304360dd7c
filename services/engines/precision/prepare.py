"""What every baking needs of a graph: nodes with names of their own, constants as initializers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization.shape_inference import quant_pre_process

from services.engines.export.checked import STANDARD_DOMAINS
from services.engines.export.graph import graphs


def prepare(data: bytes) -> onnx.ModelProto:
    """The model of a checked ONNX file, ready to be rewritten."""
    model = onnx.load_model_from_string(data)
    _lift_constants(model.graph)
    if any(node.op_type == "BatchNormalization" for node in model.graph.node):
        model = _fold(model)
    _name_nodes(model.graph)
    return model


def split_layers(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose fully connected layers are MatMul and Add: quantised products with float biases.

    ONNX Runtime has none for a Gemm with a float bias, and packs the weights of MatMul only.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    matrices = {item.name: item for item in copy.graph.initializer}
    nodes: list[onnx.NodeProto] = []
    for node in copy.graph.node:
        nodes.extend(_split(node, matrices, copy.graph))
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    drop_unused(copy.graph)
    return copy


def _fold(model: onnx.ModelProto) -> onnx.ModelProto:
    """Batch norms folded into convolutions by ONNX Runtime, where that leaves standard ONNX."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "folded.onnx"
        quant_pre_process(model, path, skip_symbolic_shape=True)
        folded = onnx.load_model_from_string(path.read_bytes())
    del folded.metadata_props[:]
    if any(node.domain not in STANDARD_DOMAINS for node in folded.graph.node):
        return model
    used = [item for item in folded.opset_import if item.domain in STANDARD_DOMAINS]
    del folded.opset_import[:]
    folded.opset_import.extend(used)
    return folded


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


def _lift_constants(graph: onnx.GraphProto) -> None:
    kept = []
    for node in graph.node:
        tensor = next((item.t for item in node.attribute if item.name == "value"), None)
        if node.op_type == "Constant" and tensor is not None:
            tensor.name = node.output[0]
            graph.initializer.append(tensor)
        else:
            kept.append(node)
    del graph.node[:]
    graph.node.extend(kept)


def _name_nodes(graph: onnx.GraphProto) -> None:
    """A name for each node: quantisers tell them apart by it, and people read it in notes."""
    taken: set[str] = set()
    for index, node in enumerate(graph.node):
        if not node.name or node.name in taken:
            node.name = f"{node.op_type}_{index}"
            while node.name in taken:
                node.name += "_"
        taken.add(node.name)


def drop_unused(graph: onnx.GraphProto) -> None:
    """Remove constants that nothing reads any more."""
    used = {name for inner in graphs(graph) for node in inner.node for name in node.input}
    used |= {item.name for item in graph.output}
    kept = [item for item in graph.initializer if item.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)
