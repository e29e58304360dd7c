"""Task: look at a backend from inside a process that may die of it."""

from __future__ import annotations

from services.children.phases import Phases
from services.engines.backends.catalogue import backend
from services.engines.requests import Availability, ProbeRequest

REQUEST = ProbeRequest


def run(request: ProbeRequest, phases: Phases) -> Availability:
    with phases.phase("examine"):
        return backend(request.backend).examine()
