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
from validators.contracts.errors import Unsupported
from validators.contracts.ports import Tensors

RUNTIME = "openvino"
GROUP_BYTES = 256 * 1024 * 1024
_OPEN_ELEMENTS = 1 << 20

_HINTS = {
    Precision.FP32: "f32",
    Precision.FP16: "f16",
    Precision.BF16: "bf16",
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

    What a quantised model does is in its nodes: trace it in fp32, which is what the rest is in.

    Raises:
        Unsupported: a precision that is no hint.  Unavailable: OpenVINO is not installed.
        TooLarge: see `Recorder.add`.
    """
    started = time.perf_counter()
    if precision not in _HINTS:
        raise Unsupported(
            f"OpenVINO takes no hint for {precision.value}", where=RUNTIME,
            remedy="Trace the quantised ONNX in fp32.",
        )  # fmt: skip
    ov = library()
    recorder, order, note = Recorder(), list[str](), ""
    try:
        core = ov.Core()
        groups = _groups(core, onnx_bytes, feeds, group_bytes)
        for names in groups:
            compiled, ports = _compile(core, onnx_bytes, names, precision)
            note = _other_precision(ov, compiled, precision)
            if note:
                break
            order += [layer.name for layer in names]
            _run(compiled, tuple(zip(names, ports, strict=True)), feeds, recorder)
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
    operations = model.get_ordered_ops()
    constant = _constants(operations)
    found: list[_Layer] = []
    taken: Counter[str] = Counter()
    for place, node in enumerate(operations):
        name, kind = node.get_friendly_name(), node.get_type_name()
        inner = kind in _NO_LAYERS or _is_fused_into_next(node, constant)
        if name in constant or (inner and name not in results) or kind == "Result":
            continue
        sources = [item.get_source_output().get_node() for item in node.inputs()]
        joins = kind == "Add" and not any(s.get_friendly_name() in constant for s in sources)
        for port in range(node.get_output_size()):
            if node.get_output_element_type(port).is_real():
                label = _label(node, port, taken)
                elements = _size(node.get_output_partial_shape(port))
                key = joins or _normalises(node)
                found.append(_Layer(place, port, label, kind, key, name in results, elements))
    return found


def _constants(operations: Sequence[Any]) -> set[str]:
    """Operations whose output no input's values decide; its shape may."""
    constant: set[str] = set()
    for node in operations:
        sources = [item.get_source_output().get_node() for item in node.inputs()]
        kind = node.get_type_name()
        fixed = kind != "Parameter" and all(s.get_friendly_name() in constant for s in sources)
        if kind == "ShapeOf" or fixed:
            constant.add(node.get_friendly_name())
    return constant


def _label(node: Any, port: int, taken: Counter[str]) -> str:
    """The name of the ONNX value; where there is none, what it is a step of.

    Names that OpenVINO makes up hold a counter of the process, and mean nothing to a reader.
    """
    names = node.output(port).get_names()
    label = min(names) if names else node.get_friendly_name()
    if not names and re.fullmatch(r"[A-Za-z0-9]+_[0-9]+", label):
        label = f"{node.get_type_name()} before {_next_name(node)}"
    taken[label] += 1
    return label if taken[label] == 1 else f"{label}#{taken[label]}"


def _next_name(node: Any) -> str:
    """The first named value on the way on."""
    for _ in range(8):
        readers = node.output(0).get_target_inputs()
        if not readers:
            break
        node = min((item.get_node() for item in readers), key=lambda item: item.get_type_name())
        if node.get_output_size() and (names := node.output(0).get_names()):
            return str(min(names))
    return "the end"


def _is_fused_into_next(node: Any, constant: set[str]) -> bool:
    """Whether one elementwise operation with constants is all that reads the node's output."""
    if node.get_output_size() != 1:
        return False
    readers = [item.get_node() for item in node.output(0).get_target_inputs()]
    if len(readers) != 1 or readers[0].get_type_name() not in _FUSED:
        return False
    names = {
        item.get_source_output().get_node().get_friendly_name() for item in readers[0].inputs()
    }
    return names - {node.get_friendly_name()} <= constant


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


def _compile(
    core: Any, data: bytes, layers: Sequence[_Layer], precision: Precision
) -> tuple[Any, list[int]]:
    """A fresh reading of the model with these layers as results, and which result each one is.

    What is a result already is not made one again.
    """
    model = core.read_model(data)
    operations = model.get_ordered_ops()
    if any(operations[item.place].get_type_name() != item.kind for item in layers):
        raise RuntimeError("the order of its operations changes between two readings")
    wanted = [operations[item.place].output(item.port) for item in layers]
    present = {_identity(_source(result)) for result in model.get_results()}
    model.add_outputs([port for port in wanted if _identity(port) not in present])
    places = {_identity(_source(r)): place for place, r in enumerate(model.get_results())}
    configuration = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": _HINTS[precision],
        "INFERENCE_NUM_THREADS": 1,
    }
    compiled = core.compile_model(model, "CPU", configuration)
    return compiled, [places[_identity(port)] for port in wanted]


def _identity(port: Any) -> tuple[str, int]:
    return port.get_node().get_friendly_name(), port.get_index()


def _other_precision(ov: Any, compiled: Any, precision: Precision) -> str:
    types = {"f32": ov.Type.f32, "f16": ov.Type.f16, "bf16": ov.Type.bf16}
    taken = compiled.get_property("INFERENCE_PRECISION_HINT")
    wanted = _HINTS[precision]
    if taken == types[wanted]:
        return ""
    return f"not run here: this CPU would compute in {taken.get_type_name()} instead of {wanted}"


def _run(
    compiled: Any,
    layers: Sequence[tuple[_Layer, int]],
    feeds: Sequence[Tensors],
    recorder: Recorder,
) -> None:
    request = compiled.create_infer_request()
    for item, feed in enumerate(feeds):
        request.infer(dict(feed), share_inputs=True)
        for layer, port in layers:
            values = np.asarray(request.get_output_tensor(port).data)
            if values.dtype.kind == "f" and values.size:
                recorder.add(
                    item, layer.name, layer.kind, values, key=layer.key, output=layer.output
                )
