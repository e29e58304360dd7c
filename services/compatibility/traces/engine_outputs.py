"""A sealed engine over the items: its outputs only, as the very code that serves computes them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from services.compatibility.traces.recorder import Recorder
from validators.compatibility.layers import Trace
from validators.contracts.ports import RunningEngine, Tensors


def trace_engine(engine: RunningEngine, feeds: Sequence[Tensors]) -> Trace:
    """Run the items one by one. An engine was refused at its build where it would have computed in
    another precision than it says, so its trace is genuine.

    Raises:
        BadInput: an item outside the engine's profiles.
    """
    started = time.perf_counter()
    recorder = Recorder()
    spec = engine.manifest.spec
    for item, feed in enumerate(feeds):
        for name, values in engine.run(feed).items():
            if values.dtype.kind == "f" and values.size:
                recorder.add(item, name, "Output", values, output=True)
    layers, sketches = recorder.finish()
    return Trace(
        f"engine {spec.backend}", spec.precision, spec.precision, len(feeds), layers, "",
        time.perf_counter() - started, sketches,
    )  # fmt: skip
