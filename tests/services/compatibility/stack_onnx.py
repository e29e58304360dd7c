"""A small stack of normalised blocks as ONNX, written by hand, so that a fault is one argument."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

WIDTH = 16
Array = np.ndarray[Any, Any]


def stack(
    *,
    epsilon: dict[int, float] | None = None,
    scale: dict[int, float] | None = None,
    written_out: bool = False,
    dtype: type[np.floating[Any]] = np.float32,
    depth: int = 3,
) -> onnx.ModelProto:
    """features [batch, 16] → vector [batch, 16]; block `i`: norm_i → linear_i → relu_i → join_i.

    `epsilon` and `scale` are of single blocks; `written_out` decomposes the norms.
    """
    rng = np.random.default_rng(2)
    nodes, weights, value = [], [], "features"
    for block in range(depth):
        eps, size = (epsilon or {}).get(block, 1e-5), (scale or {}).get(block, 1.0)
        weights += [
            _tensor(np.ones(WIDTH), f"gain_{block}", dtype),
            _tensor(size * rng.standard_normal((WIDTH, WIDTH)) / 4, f"weight_{block}", dtype),
            _tensor(rng.standard_normal(WIDTH) / 4, f"bias_{block}", dtype),
        ]
        if written_out:
            weights.append(_tensor(np.array(eps), f"eps_{block}", dtype))
            nodes += _norm(value, block)
        else:
            nodes.append(
                helper.make_node(
                    "LayerNormalization", [value, f"gain_{block}"], [f"norm_{block}"], epsilon=eps
                )
            )
        nodes += [
            helper.make_node("MatMul", [f"norm_{block}", f"weight_{block}"], [f"product_{block}"]),
            helper.make_node("Add", [f"product_{block}", f"bias_{block}"], [f"linear_{block}"]),
            helper.make_node("Relu", [f"linear_{block}"], [f"relu_{block}"]),
            helper.make_node("Add", [value, f"relu_{block}"], [f"join_{block}"]),
        ]
        value = f"join_{block}"
    nodes.append(helper.make_node("Identity", [value], ["vector"]))
    return model(nodes, weights, dtype)


def model(
    nodes: list[onnx.NodeProto],
    weights: list[onnx.TensorProto],
    dtype: type[np.floating[Any]] = np.float32,
) -> onnx.ModelProto:
    """features [batch, 16] → vector [batch, 16] by these nodes."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    ends = [helper.make_tensor_value_info(name, kind, ["batch", WIDTH])
            for name in ("features", "vector")]  # fmt: skip
    graph = helper.make_graph(nodes, "stack", ends[:1], ends[1:], weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(made, full_check=True)
    return made


def items(count: int = 6, dtype: type[np.floating[Any]] = np.float32) -> list[dict[str, Array]]:
    rows = np.random.default_rng(5).standard_normal((count, WIDTH)).astype(dtype)
    return [{"features": row[None]} for row in rows]


def _norm(value: str, block: int) -> list[onnx.NodeProto]:
    """A layer norm in small operators, as older exporters write it."""
    steps = [f"{step}_{block}" for step in ("mean", "gap", "square", "spread", "safe", "root")]
    mean, gap, square, spread, safe, root = steps
    return [
        helper.make_node("ReduceMean", [value], [mean], axes=[-1]),
        helper.make_node("Sub", [value, mean], [gap]),
        helper.make_node("Mul", [gap, gap], [square]),
        helper.make_node("ReduceMean", [square], [spread], axes=[-1]),
        helper.make_node("Add", [spread, f"eps_{block}"], [safe]),
        helper.make_node("Sqrt", [safe], [root]),
        helper.make_node("Div", [gap, root], [f"unit_{block}"]),
        helper.make_node("Mul", [f"unit_{block}", f"gain_{block}"], [f"norm_{block}"]),
    ]


def _tensor(values: Array, name: str, dtype: type[np.floating[Any]]) -> onnx.TensorProto:
    return numpy_helper.from_array(values.astype(dtype), name)
