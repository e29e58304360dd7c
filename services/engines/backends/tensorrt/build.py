"""Builds with TensorRT 11 for the GPU of this host."""

from __future__ import annotations

from pathlib import Path

from services.children.phases import Phases
from services.engines.backends.flags import check_flags
from services.engines.backends.tensorrt.probe import library
from services.engines.nvidia.plan import FLAGS, build_plan
from validators.contracts.engine import EngineSpec, Precision
from validators.contracts.errors import Unsupported


def check(spec: EngineSpec) -> None:
    check_flags(spec, FLAGS)
    if spec.precision is Precision.INT4:
        raise Unsupported(
            "TensorRT is not given int4 models here: none was ever compiled with it",
            where=spec.encoder,
            remedy="Use fp32, fp16, bf16 or int8, or TensorRT for RTX.",
        )


def build(spec: EngineSpec, onnx_path: Path, phases: Phases) -> bytes:
    check(spec)
    with phases.phase("load backend"):
        trt = library()
    return build_plan(trt, spec, onnx_path, phases)
