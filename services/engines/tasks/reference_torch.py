"""Task: the torch module itself over cases."""

from __future__ import annotations

from pathlib import Path

from services.children.phases import Phases
from services.engines.export.torch_source import load_module, run_module
from services.engines.requests import ReferenceRequest
from services.engines.tensors import load_cases, save_cases

REQUEST = ReferenceRequest


def run(request: ReferenceRequest, phases: Phases) -> None:
    with phases.phase("load"):
        module = load_module(request.location, Path(request.base))
    with phases.phase("run"):
        answers = run_module(module, request.contract, load_cases(Path(request.feeds)))
    save_cases(Path(request.out), answers)
