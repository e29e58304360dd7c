"""Task: a torch factory to checked ONNX."""

from __future__ import annotations

from pathlib import Path

from services.children.phases import Phases
from services.engines.export.checked import check_encoder
from services.engines.export.torch_source import export_module, load_module
from services.engines.requests import ExportRequest

REQUEST = ExportRequest


def run(request: ExportRequest, phases: Phases) -> None:
    entry = request.entry
    with phases.phase("load"):
        module = load_module(entry.source.location, Path(request.base))
    with phases.phase("export"):
        model = export_module(module, entry.contract, entry.profiles)
    with phases.phase("check"):
        data = check_encoder(model, entry.contract, entry.profiles)
    Path(request.out).write_bytes(data)
