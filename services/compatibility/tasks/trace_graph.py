"""Task: the ONNX of one version over items, on each runtime that was planned.

Every trace is written as it is done, so that what came before a crash is there afterwards.
"""

from __future__ import annotations

from pathlib import Path

import onnx

from services.children.phases import Phases
from services.compatibility.requests import ENGINE, ONNXRUNTIME, GraphRequest
from services.compatibility.static_onnx import read_facts
from services.compatibility.traces.engine_outputs import trace_engine
from services.compatibility.traces.files import save_trace
from services.compatibility.traces.onnx_outputs import trace_onnx
from services.compatibility.traces.openvino_outputs import trace_openvino
from services.engines.load import open_engine
from services.engines.tensors import Arrays, load_cases
from validators.compatibility.facts import ModelFacts
from validators.compatibility.layers import Trace
from validators.contracts.errors import BadInput
from validators.contracts.tensors import Meaning

REQUEST = GraphRequest


def run(request: GraphRequest, phases: Phases) -> ModelFacts:
    with phases.phase("read"):
        data = Path(request.onnx).read_bytes()
        model = onnx.load_model_from_string(data)
        feeds = load_cases(Path(request.feeds))
        outputs = request.contract.outputs
        embeddings = [spec.name for spec in outputs if spec.meaning is Meaning.GLOBAL_EMBEDDING]
        facts = read_facts(model, embeddings)
    for place, plan in enumerate(request.plans):
        with phases.phase(f"{plan.runtime} {plan.precision.value}"):
            if plan.runtime == ONNXRUNTIME:
                trace = trace_onnx(model, feeds)
            elif plan.runtime == ENGINE:
                trace = _trace_engine(request, feeds)
            else:
                trace = trace_openvino(data, feeds, plan.precision)
            save_trace(Path(request.folder) / f"graph-{place}.npz", trace)
    return facts


def _trace_engine(request: GraphRequest, feeds: list[Arrays]) -> Trace:
    manifest = request.manifest
    if manifest is None:
        raise BadInput(
            "an engine was to be traced, and none was given", where=request.contract.name,
            remedy="Give the version its sealed engine.",
        )  # fmt: skip
    engine = open_engine(manifest, Path(request.engine).read_bytes(), threads=1)
    try:
        return trace_engine(engine, feeds)
    finally:
        engine.close()
