"""What the sandbox saw of two versions of an encoder, or of one alone. No judgement in it."""

from __future__ import annotations

from dataclasses import dataclass

from validators.compatibility.facts import ModelFacts
from validators.compatibility.layers import Trace
from validators.compatibility.measured import StaticDifference
from validators.contracts.engine import Precision


@dataclass(frozen=True, slots=True)
class ExaminedVersion:
    """One version in children of its own.

    `faults` say how a child ended that did not answer (a crash, its time or memory limit); the
    traces that were done before are there. `peak_bytes` is the larger child's resident memory.
    """

    version: str
    traces: tuple[Trace, ...]
    graph: ModelFacts | None
    module: ModelFacts | None
    faults: tuple[str, ...]
    wall_s: float
    peak_bytes: int

    def trace(self, runtime: str, precision: Precision) -> Trace | None:
        """The trace of a runtime in a precision, where it ran."""
        for trace in self.traces:
            if trace.ran and (trace.runtime, trace.precision) == (runtime, precision):
                return trace
        return None


@dataclass(frozen=True, slots=True)
class SandboxMeasurement:
    """Both versions on the same items; `old` is None where the new one replaces nothing.

    `required` are the precisions that will run on the target at hand, `planned` those of engines
    for other targets.
    """

    encoder: str
    old: ExaminedVersion | None
    new: ExaminedVersion
    items: int
    required: tuple[Precision, ...]
    planned: tuple[Precision, ...]
    differences: tuple[StaticDifference, ...]
