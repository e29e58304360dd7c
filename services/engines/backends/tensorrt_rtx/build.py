"""Builds plans with TensorRT for RTX, ahead of time and without a GPU."""

from __future__ import annotations

from pathlib import Path

from services.children.phases import Phases
from services.engines.backends.flags import check_flags
from services.engines.backends.tensorrt_rtx.probe import ARCHITECTURES, library
from services.engines.nvidia.plan import FLAGS, build_plan
from validators.contracts.engine import EngineSpec, Precision
from validators.contracts.errors import Unsupported


def check(spec: EngineSpec) -> None:
    check_flags(spec, FLAGS)
    if unknown := [name for name in spec.target.features if name not in ARCHITECTURES]:
        raise Unsupported(
            f"TensorRT for RTX does not compile for {', '.join(unknown)}",
            where=spec.encoder,
            remedy="Use some of: " + ", ".join(ARCHITECTURES) + ".",
        )
    if "SM75" in spec.target.features and spec.precision is not Precision.FP16:
        raise Unsupported(
            f"TensorRT for RTX compiles fp16 models only for SM75, not {spec.precision.value}",
            where=spec.encoder,
            remedy="Leave SM75 out, or convert the ONNX to fp16.",
        )


def build(spec: EngineSpec, onnx_path: Path, phases: Phases) -> bytes:
    check(spec)
    with phases.phase("load backend"):
        trt = library()
    return build_plan(trt, spec, onnx_path, phases, capabilities=spec.target.features)
