"""Task: a built engine over cases, loaded as a server would load it."""

from __future__ import annotations

from pathlib import Path

from services.children.phases import Phases
from services.engines.load import open_engine
from services.engines.requests import EngineRunRequest
from services.engines.tensors import load_cases, save_cases

REQUEST = EngineRunRequest


def run(request: EngineRunRequest, phases: Phases) -> None:
    with phases.phase("load"):
        engine = open_engine(
            request.manifest, Path(request.engine).read_bytes(), threads=request.threads
        )
    with phases.phase("run"):
        answers = [engine.run(feeds) for feeds in load_cases(Path(request.feeds))]
    engine.close()
    save_cases(Path(request.out), answers)
