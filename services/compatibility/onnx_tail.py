"""How a graph ends: which pooling makes an embedding, and whether it leaves at unit length.

Both walk back from an output over nodes that keep the tensor's meaning; what is not recognised is
"unknown", never guessed.
"""

from __future__ import annotations

import onnx

from services.compatibility.onnx_graph import GraphLinks, attribute

_STEPS = 64
_PASSES = frozenset((
    "Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Tanh", "Gemm", "MatMul",
    "Add", "Mul", "Relu", "Gelu", "Dropout", "LayerNormalization", "BatchNormalization",
    "DequantizeLinear", "QuantizeLinear", "Expand",
))  # fmt: skip
"""Projections, activations and forms: a pooling before them is still the embedding's pooling."""

UNKNOWN = "unknown"


def pooling_of(links: GraphLinks, output: str) -> str:
    """ "mean", "masked mean", "cls", "max" or "unknown"."""
    value = _before_division(links, output) if ends_in_unit_length(links, output) else output
    for _ in range(_STEPS):
        node = links.maker(value)
        if node is None:
            return UNKNOWN
        found = _pooled_by(links, node)
        if found is not None:
            return found
        following = next((name for name in node.input if name in links.computed), None)
        if node.op_type not in _PASSES or following is None:
            return UNKNOWN
        value = following
    return UNKNOWN


def ends_in_unit_length(links: GraphLinks, output: str) -> bool:
    """Whether the output is something divided by its own Euclidean norm."""
    node = _last(links, output)
    if node is None:
        return False
    if node.op_type == "LpNormalization":
        return int(attribute(node, "p", 2)) == 2
    if node.op_type == "Div":
        return _is_norm_of(links, node.input[1], node.input[0])
    if node.op_type == "Mul":
        return any(
            _is_inverse_norm(links, inverse, value)
            for value, inverse in (node.input, reversed(node.input))
        )
    return False


def _pooled_by(links: GraphLinks, node: onnx.NodeProto) -> str | None:
    match node.op_type:
        case "GlobalAveragePool":
            return "mean"
        case "GlobalMaxPool":
            return "max"
        case "ReduceMean":
            return "mean" if _inner_axes(links, node) else None
        case "ReduceMax":
            return "max" if _inner_axes(links, node) else None
        case "Gather":
            first = links.numbers(node.input[1]) == [0] and int(attribute(node, "axis", 0)) == 1
            return "cls" if first else None
        case "Slice":
            starts, ends = (links.numbers(name) for name in node.input[1:3])
            return "cls" if (starts, ends) == ([0], [1]) else None
        case "Div":
            return "masked mean" if _is_masked_sum(links, node.input[0]) else None
    return None


def _inner_axes(links: GraphLinks, node: onnx.NodeProto) -> bool:
    """Over positions, not over the batch or the features of a position."""
    axes = attribute(node, "axes", None)
    if axes is None and len(node.input) > 1:
        axes = links.numbers(node.input[1])
    return axes is not None and 0 not in axes and list(axes) != [-1]


def _is_masked_sum(links: GraphLinks, value: str) -> bool:
    total = _last(links, value)
    if total is None or total.op_type != "ReduceSum":
        return False
    product = _last(links, total.input[0])
    return product is not None and product.op_type in ("Mul", "Where")


def _before_division(links: GraphLinks, output: str) -> str:
    node = _last(links, output)
    return node.input[0] if node is not None else output


def _last(links: GraphLinks, value: str) -> onnx.NodeProto | None:
    """The node that gives a value, forms and casts left aside."""
    node = links.maker(value)
    for _ in range(_STEPS):
        if node is None or node.op_type not in ("Identity", "Cast", "Reshape", "Squeeze"):
            return node
        node = links.maker(node.input[0])
    return node


def _is_inverse_norm(links: GraphLinks, value: str, of: str) -> bool:
    node = _last(links, value)
    return (
        node is not None and node.op_type == "Reciprocal" and _is_norm_of(links, node.input[0], of)
    )


def _is_norm_of(links: GraphLinks, value: str, of: str) -> bool:
    """ReduceL2, or the root of a sum of squares; bounded below, expanded or shifted a little."""
    for _ in range(_STEPS):
        node = links.maker(value)
        if node is None:
            return False
        if node.op_type == "ReduceL2":
            return bool(node.input[0] == of)
        if node.op_type in ("Sqrt", "Pow"):
            return _is_sum_of_squares(links, node.input[0], of)
        if node.op_type not in ("Clip", "Max", "Add", "Expand", "Identity", "Cast", "Unsqueeze"):
            return False
        following = next((name for name in node.input if name in links.computed), None)
        if following is None:
            return False
        value = following
    return False


def _is_sum_of_squares(links: GraphLinks, value: str, of: str) -> bool:
    total = _last(links, value)
    if total is None:
        return False
    if total.op_type == "ReduceSumSquare":
        return bool(total.input[0] == of)
    square = _last(links, total.input[0]) if total.op_type == "ReduceSum" else None
    return (
        square is not None
        and square.op_type in ("Pow", "Mul", "Abs")
        and (square.input[0] == of or _is_abs_of(links, square.input[0], of))
    )


def _is_abs_of(links: GraphLinks, value: str, of: str) -> bool:
    """torch writes a norm as |x| squared."""
    node = links.maker(value)
    return node is not None and node.op_type == "Abs" and node.input[0] == of
