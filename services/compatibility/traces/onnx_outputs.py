"""Every float tensor between the nodes of a checked ONNX, as an extra output of ONNX Runtime.

Nothing is optimised, so that nodes are what the file says. The extra outputs are taken in groups of
at most GROUP_BYTES, a session each, item by item, so that memory stays bounded whatever the model.
ONNX Runtime on a CPU computes halves in fp32: the trace says so in `computed_in`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from services.compatibility.onnx_graph import NORM_OPERATORS, GraphLinks
from services.compatibility.static_onnx import find_norms
from services.compatibility.traces.recorder import Recorder
from services.engines.backends.onnxruntime.build import PROVIDERS, options
from services.engines.backends.onnxruntime.probe import library
from services.engines.precision import carried_precision
from validators.compatibility.layers import Trace
from validators.contracts.engine import Precision
from validators.contracts.ports import Tensors

RUNTIME = "onnxruntime"
GROUP_BYTES = 256 * 1024 * 1024
_UNKNOWN_BYTES = 4 * 1024 * 1024  # where a shape cannot be inferred
_FLOATS = frozenset({
    onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE,
})  # fmt: skip
_MOVES = frozenset((
    "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Dropout",
))  # fmt: skip
"""What only moves numbers is no layer: the one before it tells the same."""


def trace_onnx(
    model: onnx.ModelProto, feeds: Sequence[Tensors], *, group_bytes: int = GROUP_BYTES
) -> Trace:
    """Run the items one by one, in the precision that the model carries.

    Raises:
        TooLarge: see `Recorder.add`.
    """
    started = time.perf_counter()
    carried = carried_precision(model)
    halves = carried in (Precision.FP16, Precision.BF16)
    layers = _layers(model)
    recorder = Recorder()
    note = ""
    try:
        for names in _groups(model, list(layers), feeds, group_bytes):
            _run(model, names, layers, feeds, recorder)
    except Exception as error:  # ONNX Runtime's exceptions share no base but Exception
        lines = str(error).strip().splitlines() or [type(error).__name__]
        note, recorder = f"ONNX Runtime does not run it: {lines[0][:200]}", Recorder()
    statistics, sketches = recorder.finish(layers)
    computed = Precision.FP32 if halves else carried
    return Trace(
        RUNTIME, carried, None if note else computed, len(feeds), statistics, note,
        time.perf_counter() - started, sketches,
    )  # fmt: skip


def _layers(model: onnx.ModelProto) -> dict[str, tuple[str, bool, bool]]:
    """Values worth a look, in the order of the nodes: (kind, key, output).

    Key are the normalisations, sums of two computed tensors (where a block joins what went around
    it) and the model's outputs.
    """
    links = GraphLinks(model)
    norms = {fact.name for fact in find_norms(links)}
    found = {}
    for node in links.nodes:
        joins = node.op_type == "Add" and all(name in links.computed for name in node.input)
        normalises = node.op_type in NORM_OPERATORS
        for place, name in enumerate(node.output):
            output = name in links.outputs
            moved = node.op_type in _MOVES and not output
            if not name or name not in links.computed or moved or (normalises and place > 0):
                continue
            found[name] = (node.op_type, joins or normalises or name in norms, output)
    return found


def _groups(
    model: onnx.ModelProto, names: Sequence[str], feeds: Sequence[Tensors], limit: int
) -> Iterator[list[str]]:
    """Names in order, as many at a time as fit in `limit` bytes for the largest item."""
    sizes = _sizes(model, _largest(feeds)) if feeds else {}
    group: list[str] = []
    total = 0
    for name in names:
        size = sizes.get(name, _UNKNOWN_BYTES)
        if size == 0:
            continue  # no float tensor
        if group and total + size > limit:
            yield group
            group, total = [], 0
        group.append(name)
        total += size
    if group:
        yield group


def _sizes(model: onnx.ModelProto, feed: Tensors) -> dict[str, int]:
    """Bytes of each value for an item of these shapes; 0 for what is no float tensor."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for item in fixed.graph.input:
        if item.name in feed:
            dims = item.type.tensor_type.shape.dim
            for dim, size in zip(dims, feed[item.name].shape, strict=False):
                dim.Clear()
                dim.dim_value = size
    for item in fixed.graph.output:
        item.type.tensor_type.ClearField("shape")  # what is inferred from the inputs counts
    inferred = onnx.shape_inference.infer_shapes(fixed, data_prop=True)
    return {
        item.name: _bytes_of(item.type.tensor_type)
        for item in (*inferred.graph.value_info, *inferred.graph.output)
        if item.type.HasField("tensor_type")
    }


def _bytes_of(tensor: onnx.TypeProto.Tensor) -> int:
    if tensor.elem_type not in _FLOATS:
        return 0
    if not tensor.HasField("shape"):
        return _UNKNOWN_BYTES
    sizes = [dim.dim_value for dim in tensor.shape.dim]
    if any(size == 0 for size in sizes):
        return _UNKNOWN_BYTES
    return 4 * int(np.prod(sizes, dtype=np.int64)) if sizes else 4


def _run(
    model: onnx.ModelProto,
    names: Sequence[str],
    layers: Mapping[str, tuple[str, bool, bool]],
    feeds: Sequence[Tensors],
    recorder: Recorder,
) -> None:
    ort = library()
    session = ort.InferenceSession(
        with_outputs(model, names), options(ort, 1, optimise=False), providers=PROVIDERS
    )
    for item, feed in enumerate(feeds):
        for name, values in zip(names, session.run(list(names), dict(feed)), strict=True):
            if isinstance(values, np.ndarray) and values.dtype.kind == "f" and values.size:
                kind, key, output = layers[name]
                recorder.add(item, name, kind, values, key=key, output=output)


def with_outputs(model: onnx.ModelProto, names: Sequence[str]) -> bytes:
    """The model with more outputs; ONNX Runtime finds their types out for itself."""
    watched: Any = onnx.ModelProto()
    watched.CopyFrom(model)
    present = {item.name for item in watched.graph.output}
    watched.graph.output.extend(
        onnx.ValueInfoProto(name=name) for name in names if name not in present
    )
    data: bytes = watched.SerializeToString()
    return data


def _largest(feeds: Sequence[Tensors]) -> Tensors:
    return max(feeds, key=lambda feed: sum(array.size for array in feed.values()))
