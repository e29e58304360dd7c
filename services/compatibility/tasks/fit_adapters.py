"""Task: fit every kind of adapter on pairs, and measure each by its ONNX model on held-out ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from services.children.phases import Phases
from services.compatibility.adapters.fitting import FitAnswer, FitRequest, model_name
from services.compatibility.adapters.graph import INPUT, OUTPUT, to_onnx
from services.compatibility.adapters.maps import fit_affine, fit_procrustes, score
from services.compatibility.adapters.measure import Apply, Described, measure_adapter
from services.compatibility.adapters.mlp import fit_mlp
from services.compatibility.adapters.pairs import AdapterPairs, questions_of, split_pairs
from services.engines.backends.onnxruntime.build import PROVIDERS, options
from services.engines.backends.onnxruntime.probe import library

REQUEST = FitRequest

Array = npt.NDArray[Any]


def run(request: FitRequest, phases: Phases) -> FitAnswer:
    pairs = AdapterPairs.load(Path(request.pairs)).sound()
    split = split_pairs(pairs, request.seed)
    known = pairs.at(~np.isin(pairs.item, split.held_out.item))
    questions = questions_of(split.validation, known)
    with phases.phase("procrustes"):
        turned = fit_procrustes(known)
    with phases.phase("affine"):
        affine = fit_affine(split.fitting, split.validation)
    with phases.phase("mlp"):
        # Judged on validation pairs, so its base may not have seen them either.
        starts = [fit_procrustes(split.fitting), affine]
        base = max(starts, key=lambda item: score(item, questions))
        network = fit_mlp(base, split.fitting, questions)
    measured = []
    for found in (turned, affine, network):
        with phases.phase(f"measure {found.kind.value}"):
            data = to_onnx(found)
            (Path(request.out) / model_name(found.kind)).write_bytes(data)
            measured.append(measure_adapter(Described.of(found), _runner(data), pairs, split))
    return FitAnswer(tuple(measured))


def _runner(data: bytes) -> Apply:
    ort = library()
    session = ort.InferenceSession(data, options(ort, 1, optimise=True), providers=PROVIDERS)

    def apply(rows: Array) -> Array:
        answer: Array = session.run([OUTPUT], {INPUT: rows})[0]
        return answer

    return apply
