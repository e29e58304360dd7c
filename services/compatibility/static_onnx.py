"""What an ONNX file says about itself: norms and their epsilons, weights, pooling, final norm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import onnx
from onnx import TensorProto

from services.compatibility.onnx_graph import NORM_OPERATORS, GraphLinks, attribute
from services.compatibility.onnx_tail import ends_in_unit_length, pooling_of
from services.engines.export.graph import graphs
from services.engines.precision import QUANTISED_OPERATORS
from validators.compatibility.facts import ModelFacts, NormFact, OutputFact

_DEFAULT_EPSILON = 1e-5
_NOT_WEIGHTS = frozenset({TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL})
"""Shapes, axes, indices and masks: how an exporter wrote a graph, not what was learned."""


def read_facts(model: onnx.ModelProto, embeddings: Iterable[str] = ()) -> ModelFacts:
    """The facts of a checked model. `embeddings` are the outputs whose pooling is wanted."""
    links = GraphLinks(model)
    types: Counter[str] = Counter()
    weights = []
    quantised: Counter[str] = Counter()
    for graph in graphs(model.graph):
        quantised.update(node.op_type for node in graph.node if node.op_type in QUANTISED_OPERATORS)
        for tensor in graph.initializer:
            if tensor.data_type in _NOT_WEIGHTS:
                continue
            size = 1
            for dim in tensor.dims:
                size *= dim
            types[TensorProto.DataType.Name(tensor.data_type).lower()] += size
            weights.append((tensor.name, tuple(tensor.dims)))
    return ModelFacts(
        opset=max((item.version for item in model.opset_import if item.domain == ""), default=0),
        parameters=sum(types.values()),
        types=tuple(sorted(types.items())),
        quantised=tuple(sorted(quantised.items())),
        weights=tuple(sorted(weights)),
        norms=tuple(find_norms(links)),
        outputs=tuple(
            OutputFact(name, pooling_of(links, name), ends_in_unit_length(links, name))
            for name in embeddings
        ),
    )


def find_norms(links: GraphLinks) -> Iterator[NormFact]:
    """Normalisations in order, as one operator or written out in small ones.

    Each is named by the value that its last node gives (the scale and shift left aside).
    """
    for node in links.nodes:
        if node.op_type in NORM_OPERATORS:
            epsilon = float(attribute(node, "epsilon", _DEFAULT_EPSILON))
            yield NormFact(node.output[0], NORM_OPERATORS[node.op_type], epsilon)
        elif node.op_type in ("Sqrt", "Pow"):
            found = _written_out(links, node)
            if found is not None:
                yield found


def _written_out(links: GraphLinks, root: onnx.NodeProto) -> NormFact | None:
    """ReduceMean → Sub → Pow → ReduceMean → Add(epsilon) → Sqrt → Div, or the same without the
    first two, which is an RMS norm. Pow to 0.5 or -0.5 is a root too, and epsilon may be added to
    the root instead."""
    inverse = False
    if root.op_type == "Pow":
        power = links.scalar(root.input[1])
        if power not in (0.5, -0.5):
            return None
        inverse = power < 0
    inner, epsilon = _without_epsilon(links, links.maker(root.input[0]))
    result = root.output[0]
    if epsilon is None and not inverse:
        add = next((node for node in links.readers(result) if node.op_type == "Add"), None)
        if add is not None:
            _, epsilon = _without_epsilon(links, add)
            inner, result = root.input[0], add.output[0]
    mean = links.maker(inner) if inner is not None else None
    if epsilon is None or mean is None or mean.op_type != "ReduceMean":
        return None
    centred = _squared(links, mean.input[0])
    end = _multiplied_by(links, result) if inverse else _divided_by(links, result)
    if centred is None or end is None:
        return None
    return NormFact(end, "LayerNorm" if _is_centred(links, centred) else "RMSNorm", epsilon)


def _without_epsilon(
    links: GraphLinks, add: onnx.NodeProto | None
) -> tuple[str | None, float | None]:
    """What a constant is added to, and that constant."""
    if add is not None and add.op_type == "Add":
        for value, constant in (add.input, reversed(add.input)):
            if (epsilon := links.scalar(constant)) is not None:
                return value, epsilon
    return None, None


def _squared(links: GraphLinks, value: str) -> str | None:
    """What was squared to give `value`."""
    node = links.maker(value)
    if node is None:
        return None
    if node.op_type == "Pow" and links.scalar(node.input[1]) == 2.0:
        return node.input[0]
    if node.op_type == "Mul" and node.input[0] == node.input[1]:
        return node.input[0]
    return None


def _is_centred(links: GraphLinks, value: str) -> bool:
    node = links.maker(value)
    if node is None or node.op_type != "Sub":
        return False
    mean = links.maker(node.input[1])
    return mean is not None and mean.op_type == "ReduceMean" and mean.input[0] == node.input[0]


def _divided_by(links: GraphLinks, value: str) -> str | None:
    """What comes out where something is divided by `value`, or multiplied by its inverse."""
    for node in links.readers(value):
        if node.op_type == "Div" and node.input[1] == value:
            return node.output[0]
        if node.op_type == "Reciprocal":
            return _multiplied_by(links, node.output[0]) or node.output[0]
    return None


def _multiplied_by(links: GraphLinks, value: str) -> str | None:
    """What comes out of the first that reads `value`, an inverse root."""
    readers = links.readers(value)
    return readers[0].output[0] if readers else None
