"""Task: an ONNX file to checked ONNX."""

from __future__ import annotations

from pathlib import Path

from services.children.phases import Phases
from services.engines.export.checked import check_encoder
from services.engines.export.onnx_source import load_source
from services.engines.requests import ExportRequest

REQUEST = ExportRequest


def run(request: ExportRequest, phases: Phases) -> None:
    entry = request.entry
    with phases.phase("load"):
        model = load_source(Path(request.base) / entry.source.location, entry.contract)
    with phases.phase("check"):
        data = check_encoder(model, entry.contract, entry.profiles)
    Path(request.out).write_bytes(data)
