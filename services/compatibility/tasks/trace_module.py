"""Task: the torch module of one version over items, in each precision that was planned."""

from __future__ import annotations

from pathlib import Path

from services.children.phases import Phases
from services.compatibility.requests import ModuleRequest
from services.compatibility.static_torch import read_module_facts
from services.compatibility.traces.files import save_trace
from services.compatibility.traces.torch_hooks import as_tensors, trace_module
from services.engines.export.torch_source import load_module
from services.engines.tensors import load_cases
from validators.compatibility.facts import ModelFacts

REQUEST = ModuleRequest


def run(request: ModuleRequest, phases: Phases) -> ModelFacts:
    with phases.phase("load"):
        module = load_module(request.factory, Path(request.base))
        facts = read_module_facts(module)
        names = [spec.name for spec in request.contract.inputs]
        items = [
            as_tensors([feed[name] for name in names]) for feed in load_cases(Path(request.feeds))
        ]
    for place, precision in enumerate(request.precisions):
        with phases.phase(f"torch {precision.value}"):
            trace = trace_module(module, items, precision)
            save_trace(Path(request.folder) / f"module-{place}.npz", trace)
    return facts
