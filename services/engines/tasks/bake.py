"""Task: bake a precision into a checked ONNX file."""

from __future__ import annotations

from pathlib import Path

from services.children.phases import Phases
from services.engines.precision.recipe import bake_precision
from services.engines.requests import BakeRequest
from services.engines.tensors import load_cases

REQUEST = BakeRequest


def run(request: BakeRequest, phases: Phases) -> None:
    with phases.phase("load"):
        model = Path(request.onnx).read_bytes()
        calibration = load_cases(Path(request.calibration))
    with phases.phase("bake"):
        baked = bake_precision(
            model, request.contract, request.precision, calibration,
            profiles=request.profiles, tolerance=request.tolerance,
        )  # fmt: skip
    for note in baked.notes:
        print(note, flush=True)
    Path(request.out).write_bytes(baked.onnx)
