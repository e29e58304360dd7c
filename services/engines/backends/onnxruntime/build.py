"""Optimises with ONNX Runtime for this host and keeps the optimised graph."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import onnx

from services.children.phases import Phases
from services.engines.backends.flags import check_flags
from services.engines.backends.onnxruntime.probe import library
from services.engines.export.graph import graphs
from services.engines.precision.carried import require_carried
from services.engines.precision.computed import report_computed
from validators.contracts.engine import EngineSpec, Precision
from validators.contracts.errors import BadInput, Unsupported

PROVIDERS = ["CPUExecutionProvider"]
_QUIET = 3  # errors only
_DISABLED = {Precision.INT8: ["MatMulAddFusion"]}
"""It makes Gemm of MatMul and Add, which has no quantised kernel with a float bias."""

_COMPUTED = (Precision.FP32, Precision.INT8, Precision.INT4)
_PRODUCTS = {
    "f32": frozenset(("Attention", "Conv", "ConvTranspose", "FusedConv", "FusedGemm", "FusedMatMul",
                      "FusedMatMulActivation", "Gemm", "MatMul", "MultiHeadAttention")),
    "i8": frozenset(("ConvInteger", "DynamicQuantizeMatMul", "MatMulInteger",
                     "MatMulIntegerToFloat", "QAttention", "QGemm", "QLinearConv",
                     "QLinearMatMul")),
    "i4": frozenset(("MatMulNBits",)),
}  # fmt: skip


def check(spec: EngineSpec) -> None:
    """On a CPU it computes half precision in fp32: what it answered there would prove nothing."""
    check_flags(spec, {})
    if spec.precision not in _COMPUTED:
        raise Unsupported(
            f"ONNX Runtime on a CPU does not compute in {spec.precision.value}",
            where=spec.encoder,
            remedy="Use fp32, or bake int8 or int4; judge halves on another backend.",
        )


def options(ort: Any, threads: int, *, optimise: bool) -> Any:
    """Session options: a fixed number of threads that sleep when idle instead of spinning."""
    made = ort.SessionOptions()
    made.intra_op_num_threads = threads
    made.inter_op_num_threads = 1
    made.log_severity_level = _QUIET
    made.add_session_config_entry("session.intra_op.allow_spinning", "0")
    levels = ort.GraphOptimizationLevel
    made.graph_optimization_level = levels.ORT_ENABLE_ALL if optimise else levels.ORT_DISABLE_ALL
    return made


def build(spec: EngineSpec, onnx_path: Path, phases: Phases) -> bytes:
    check(spec)
    with phases.phase("load backend"):
        ort = library()
    with phases.phase("parse"):
        data = onnx_path.read_bytes()
        require_carried(onnx.load_model_from_string(data), spec.precision, "onnxruntime")
    with phases.phase("compile"), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "optimised.onnx"
        settings = options(ort, 1, optimise=True)
        settings.optimized_model_filepath = str(path)
        try:
            ort.InferenceSession(
                data,
                settings,
                providers=PROVIDERS,
                disabled_optimizers=_DISABLED.get(spec.precision),
            )
        except Exception as error:  # its exceptions share no base but Exception
            raise BadInput(
                f"ONNX Runtime cannot build it: {str(error).strip()[:300]}",
                where=spec.encoder,
                remedy="Export the model with operators that ONNX Runtime has.",
            ) from error
        optimised = path.read_bytes()
        report_computed(product_types(onnx.load_model_from_string(optimised)), spec)
        return optimised


def product_types(model: onnx.ModelProto) -> list[str]:
    """The type that each convolution and matrix product of an optimised graph runs in."""
    return [
        name
        for graph in graphs(model.graph)
        for node in graph.node
        for name, operators in _PRODUCTS.items()
        if node.op_type in operators
    ]
