"""Task: the ONNX model as given over cases, by ONNX Runtime without any optimisation."""

from __future__ import annotations

from pathlib import Path

from services.children.phases import Phases
from services.engines.backends.onnxruntime.build import PROVIDERS, options
from services.engines.backends.onnxruntime.probe import library
from services.engines.requests import ReferenceRequest
from services.engines.tensors import load_cases, save_cases

REQUEST = ReferenceRequest


def run(request: ReferenceRequest, phases: Phases) -> None:
    ort = library()
    with phases.phase("load"):
        session = ort.InferenceSession(
            Path(request.location).read_bytes(),
            options(ort, 1, optimise=False),
            providers=PROVIDERS,
        )
    names = [spec.name for spec in request.contract.outputs]
    with phases.phase("run"):
        answers = [
            dict(zip(names, session.run(names, feeds), strict=True))
            for feeds in load_cases(Path(request.feeds))
        ]
    save_cases(Path(request.out), answers)
