"""Task: compile a checked ONNX file with one backend."""

from __future__ import annotations

from pathlib import Path

from services.children.phases import Phases
from services.engines.backends.catalogue import backend
from services.engines.requests import BuildRequest

REQUEST = BuildRequest


def run(request: BuildRequest, phases: Phases) -> None:
    maker = backend(request.spec.backend)
    engine = maker.build(request.spec, Path(request.onnx), phases)
    with phases.phase("write"):
        Path(request.out).write_bytes(engine)
