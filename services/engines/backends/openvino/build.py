"""Compiles with OpenVINO: bounded dynamic dims, and always an explicit precision hint."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import onnx

from services.children.phases import Phases
from services.engines.backends.flags import check_flags
from services.engines.backends.openvino.probe import library
from services.engines.precision.carried import require_carried
from services.engines.precision.computed import report_computed
from validators.contracts.engine import EngineSpec, Precision, ShapeProfile
from validators.contracts.errors import Unsupported

_HINTS = {
    Precision.FP32: "f32",
    Precision.FP16: "f16",
    Precision.BF16: "bf16",
    Precision.INT8: "f32",  # quantised nodes of the model run as such, the rest in f32
    Precision.INT4: "f32",  # weights stay packed, products are with activations in groups of int8
}
_BAKED = frozenset({Precision.INT8, Precision.INT4})
_PRODUCTS = frozenset({"Convolution", "Deconvolution", "FullyConnected", "MatMul"})

INT8_GROUP = 32
"""Activations that share a scale where they meet packed weights: the library's default, fixed."""


def check(spec: EngineSpec) -> None:
    """Every precision has a way: fp16 and bf16 by hint where the CPU has them, int8 and int4 baked.

    What the CPU does not compute shows after compiling, and is refused then.
    """
    check_flags(spec, {})


def configuration(spec: EngineSpec, threads: int) -> dict[str, Any]:
    """The same on compile and import: a blob imported under another hint answers NaN, silently.

    On CPUs with AMX the default hint is bf16, so it is never left open.
    """
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": _HINTS[spec.precision],
        "INFERENCE_NUM_THREADS": threads,
    }
    if spec.precision is Precision.INT4:
        settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = INT8_GROUP
    return settings


def bounds(profiles: Iterable[ShapeProfile]) -> dict[str, list[tuple[int, int]]]:
    """For each input, the (least, greatest) size per dimension over all profiles.

    One blob serves them all: it accepts the union's box, and the guard in front keeps requests to
    the profiles themselves. A blob per profile would multiply memory and load time.
    """
    boxes: dict[str, list[tuple[int, int]]] = {}
    for profile in profiles:
        for item in profile.ranges:
            spans = list(zip(item.minimum, item.maximum, strict=True))
            before = boxes.get(item.tensor, spans)
            boxes[item.tensor] = [
                (min(a, c), max(b, d)) for (a, b), (c, d) in zip(before, spans, strict=True)
            ]
    return boxes


def build(spec: EngineSpec, onnx_path: Path, phases: Phases) -> bytes:
    check(spec)
    with phases.phase("load backend"):
        ov = library()
        core = ov.Core()
    with phases.phase("parse"):
        data = onnx_path.read_bytes()
        if spec.precision in _BAKED:
            require_carried(onnx.load_model_from_string(data), spec.precision, "openvino")
        model = core.read_model(data)
        model.reshape(
            {
                name: ov.PartialShape([low if low == high else (low, high) for low, high in box])
                for name, box in bounds(spec.profiles).items()
            }
        )
    with phases.phase("compile"):
        compiled = core.compile_model(model, "CPU", configuration(spec, threads=1))
        require_hint(ov, compiled, spec)
        report_computed(product_types(compiled), spec)
    with phases.phase("serialise"):
        exported = compiled.export_model()
        return exported.getvalue() if isinstance(exported, io.BytesIO) else bytes(exported)


def require_hint(ov: Any, compiled: Any, spec: EngineSpec) -> None:
    """Raise Unsupported where the CPU took another precision than the one it was asked for.

    A CPU without half-precision arithmetic turns f16 into bf16 without a word.
    """
    types = {"f32": ov.Type.f32, "f16": ov.Type.f16, "bf16": ov.Type.bf16}
    taken = compiled.get_property("INFERENCE_PRECISION_HINT")
    wanted = _HINTS[spec.precision]
    if taken != types[wanted]:
        raise Unsupported(
            f"this CPU would compute in {taken.get_type_name()} where {wanted} was asked for",
            where=f"{spec.encoder} on {spec.target.name}",
            remedy="Choose a precision that the CPU has: fp32 always, bf16 or fp16 where listed.",
        )


def product_types(compiled: Any) -> list[str]:
    """The type that each convolution and matrix product runs in, as the CPU plug-in tells it."""
    types = []
    for node in compiled.get_runtime_model().get_ordered_ops():
        facts = node.get_rt_info()
        if facts["layerType"].astype(str) in _PRODUCTS:
            types.append(str(facts["runtimePrecision"].astype(str)))
    return types
