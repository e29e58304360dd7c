"""The tensors between OpenVINO's operations, as extra results, in the precision that will run.

bf16 is real where the CPU has it. A CPU without half-precision arithmetic turns f16 into bf16
without a word: such a trace is not run, and says why. Only ends of chains are watched (a
convolution with its bias and activation is one), so that OpenVINO goes on fusing them; what a
sealed engine gives is traced by its outputs alone, see `engine_outputs`.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from services.compatibility.traces.recorder import Recorder
from services.engines.backends.openvino.probe import library
from validators.compatibility.layers import Trace
from validators.contracts.engine import Precision
from validators.contracts.ports import Tensors

RUNTIME = "openvino"
GROUP_BYTES = 256 * 1024 * 1024
_OPEN_ELEMENTS = 1 << 20

_HINTS = {
    Precision.FP32: "f32",
    Precision.FP16: "f16",
    Precision.BF16: "bf16",
    Precision.INT8: "f32",
}
_NO_LAYERS = frozenset((
    "Constant", "Parameter", "Result", "Convert", "Reshape", "Squeeze", "Unsqueeze", "Transpose",
    "Broadcast", "ReadValue", "Assign", "Range", "ShapeOf",
))  # fmt: skip
_FUSED = frozenset((
    "Add", "Multiply", "Subtract", "Relu", "PRelu", "Clamp", "Sigmoid", "HSigmoid", "HSwish",
    "Swish", "Gelu", "Elu", "Tanh", "Mish", "SoftPlus", "Abs", "Sqrt", "FakeQuantize", "Power",
    "Convert", "Maximum", "Minimum",
))  # fmt: skip
"""Elementwise operations: applied to one tensor they belong to the operation before them."""
_NORMS = frozenset(("MVN", "GroupNormalization", "BatchNormInference", "NormalizeL2", "RMS"))


def trace_openvino(
    onnx_bytes: bytes,
    feeds: Sequence[Tensors],
    precision: Precision,
    *,
    group_bytes: int = GROUP_BYTES,
) -> Trace:
    """Compile with the precision's hint and run the items one by one.

    Raises:
        Unavailable: OpenVINO is not installed.  TooLarge: see `Recorder.add`.
    """
    started = time.perf_counter()
    ov = library()
    recorder, order, note = Recorder(), list[str](), ""
    try:
        core = ov.Core()
        groups = _groups(core, onnx_bytes, feeds, group_bytes)
        for names in groups:
            compiled = _compile(core, onnx_bytes, names, precision)
            note = _other_precision(ov, compiled, precision)
            if note:
                break
            order += [layer.name for layer in names]
            _run(compiled, names, feeds, recorder)
    except RuntimeError as error:
        lines = str(error).strip().splitlines() or ["no reason given"]
        note = f"OpenVINO does not run it: {lines[-1][:200]}"
    layers, sketches = (Recorder() if note else recorder).finish(order)
    return Trace(
        RUNTIME, precision, None if note else precision, len(feeds), layers, note,
        time.perf_counter() - started, sketches,
    )  # fmt: skip


@dataclass(slots=True)
class _Layer:
    """One output of one operation, by its place in the order: what to call it, how large it is."""

    place: int
    port: int
    name: str
    kind: str
    key: bool
    output: bool
    elements: int


def _groups(core: Any, data: bytes, feeds: Sequence[Tensors], limit: int) -> list[list[_Layer]]:
    """The layers of a model, in its order, as many at a time as fit in `limit` bytes."""
    sizes = _sizes(core, data, feeds)
    groups: list[list[_Layer]] = [[]]
    total = 0
    for layer in _layers(core.read_model(data)):
        size = 4 * sizes.get(layer.name, _OPEN_ELEMENTS)
        if groups[-1] and total + size > limit:
            groups.append([])
            total = 0
        groups[-1].append(layer)
        total += size
    return groups


def _sizes(core: Any, data: bytes, feeds: Sequence[Tensors]) -> dict[str, int]:
    """Elements of each layer for the largest item; other shapes fold other parts of the model."""
    model = core.read_model(data)
    largest = max(feeds, key=lambda feed: sum(array.size for array in feed.values()), default={})
    model.reshape({name: list(array.shape) for name, array in largest.items()})
    return {layer.name: layer.elements for layer in _layers(model)}


def _layers(model: Any) -> list[_Layer]:
    results = {_source(result).get_node().get_friendly_name() for result in model.get_results()}
    constant: set[str] = set()
    found: list[_Layer] = []
    taken: Counter[str] = Counter()
    for place, node in enumerate(model.get_ordered_ops()):
        name, kind = node.get_friendly_name(), node.get_type_name()
        sources = [item.get_source_output().get_node() for item in node.inputs()]
        if kind == "ShapeOf" or (
            kind != "Parameter" and all(_is_constant(source, constant) for source in sources)
        ):
            constant.add(name)
        elif name in results or not (kind in _NO_LAYERS or _is_fused_into_next(node, constant)):
            joins = kind == "Add" and not any(_is_constant(item, constant) for item in sources)
            for port in range(node.get_output_size()):
                if node.get_output_element_type(port).is_real():
                    label = _label(node, port, taken)
                    elements = _size(node.get_output_partial_shape(port))
                    key = joins or _normalises(node)
                    found.append(_Layer(place, port, label, kind, key, name in results, elements))
    return found


def _label(node: Any, port: int, taken: Counter[str]) -> str:
    """The name of the ONNX value where it is known; names that OpenVINO makes up hold a counter of
    the process, which is cut off."""
    names = node.output(port).get_names()
    label = min(names) if names else re.sub(r"_[0-9]+$", "", node.get_friendly_name())
    taken[label] += 1
    return label if taken[label] == 1 else f"{label}#{taken[label]}"


def _is_fused_into_next(node: Any, constant: set[str]) -> bool:
    """Whether one elementwise operation with constants is all that reads the node's output."""
    if node.get_output_size() != 1:
        return False
    readers = [item.get_node() for item in node.output(0).get_target_inputs()]
    if len(readers) != 1 or readers[0].get_type_name() not in _FUSED:
        return False
    sources = [item.get_source_output().get_node() for item in readers[0].inputs()]
    return all(
        _is_constant(source, constant)
        for source in sources
        if source.get_friendly_name() != node.get_friendly_name()
    )


def _is_constant(node: Any, constant: set[str]) -> bool:
    return node.get_type_name() == "Constant" or node.get_friendly_name() in constant


def _normalises(node: Any) -> bool:
    """A normalisation, or its scale and shift."""
    for _ in range(3):
        if node.get_type_name() in _NORMS:
            return True
        if node.get_type_name() not in ("Add", "Multiply"):
            return False
        node = node.input(0).get_source_output().get_node()
    return False


def _source(result: Any) -> Any:
    return result.input(0).get_source_output()


def _size(shape: Any) -> int:
    """Elements; a size that is open even for known inputs is taken as large."""
    if shape.rank.is_dynamic or any(dim.is_dynamic for dim in shape):
        return _OPEN_ELEMENTS
    return math.prod(dim.get_length() for dim in shape)


def _compile(core: Any, data: bytes, layers: Sequence[_Layer], precision: Precision) -> Any:
    """A fresh reading of the model: extra results change it, the order of operations stays."""
    model = core.read_model(data)
    operations = model.get_ordered_ops()
    if any(operations[item.place].get_type_name() != item.kind for item in layers):
        raise RuntimeError("the order of its operations changes between two readings")
    model.add_outputs([operations[item.place].output(item.port) for item in layers])
    configuration = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": _HINTS[precision],
        "INFERENCE_NUM_THREADS": 1,
    }
    return core.compile_model(model, "CPU", configuration)


def _other_precision(ov: Any, compiled: Any, precision: Precision) -> str:
    types = {"f32": ov.Type.f32, "f16": ov.Type.f16, "bf16": ov.Type.bf16}
    taken = compiled.get_property("INFERENCE_PRECISION_HINT")
    wanted = _HINTS[precision]
    if taken == types[wanted]:
        return ""
    return f"not run here: this CPU would compute in {taken.get_type_name()} instead of {wanted}"


def _run(
    compiled: Any, layers: Sequence[_Layer], feeds: Sequence[Tensors], recorder: Recorder
) -> None:
    request = compiled.create_infer_request()
    first = len(compiled.outputs) - len(layers)
    for item, feed in enumerate(feeds):
        request.infer(dict(feed), share_inputs=True)
        for place, layer in enumerate(layers):
            values = np.asarray(request.get_output_tensor(first + place).data)
            if values.dtype.kind == "f" and values.size:
                recorder.add(
                    item, layer.name, layer.kind, values, key=layer.key, output=layer.output
                )
