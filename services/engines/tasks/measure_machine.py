"""Task: this machine's roofs, and an encoder's work under them."""

from __future__ import annotations

from pathlib import Path

from services.children.phases import Phases
from services.engines.precision.measure_request import Machine, MachineRequest
from services.engines.precision.roofs import line_over_word, multiply_rates, read_rate
from services.engines.precision.work import count_layers

REQUEST = MachineRequest


def run(request: MachineRequest, phases: Phases) -> Machine:
    with phases.phase("count"):
        layers = count_layers(Path(request.onnx), dict(request.shapes))
    with phases.phase("read"):
        read = tuple((size, read_rate(size)) for size in request.sizes_bytes)
        lines = line_over_word()
    with phases.phase("multiply"):
        return Machine(layers, read, multiply_rates(), lines)
