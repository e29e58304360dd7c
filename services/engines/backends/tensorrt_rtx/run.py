"""Runs a TensorRT for RTX plan."""

from __future__ import annotations

from services.engines.backends.protocol import Session
from services.engines.backends.tensorrt_rtx.probe import library
from services.engines.nvidia.execution import open_plan
from validators.contracts.engine import EngineSpec


def open_session(spec: EngineSpec, engine: bytes, threads: int) -> Session:
    """`threads` does not apply: the work is the GPU's."""
    del threads
    return open_plan(library(), spec, engine)
