"""Builds with TensorRT 11 for the GPU of this host."""

from __future__ import annotations

from pathlib import Path

from services.children.phases import Phases
from services.engines.backends.flags import check_flags
from services.engines.backends.tensorrt.probe import library
from services.engines.nvidia.plan import FLAGS, build_plan, check_precision
from validators.contracts.engine import EngineSpec


def check(spec: EngineSpec) -> None:
    check_flags(spec, FLAGS)
    check_precision(spec)


def build(spec: EngineSpec, onnx_path: Path, phases: Phases) -> bytes:
    check(spec)
    with phases.phase("load backend"):
        trt = library()
    return build_plan(trt, spec, onnx_path, phases)
