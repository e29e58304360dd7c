"""What every baking needs of a graph: nodes with names of their own, constants as initializers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import onnx
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
