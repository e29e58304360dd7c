"""What the sandbox saw of two versions of an encoder, or of one alone. No judgement in it."""

from __future__ import annotations

from dataclasses import dataclass

from validators.compatibility.facts import ModelFacts
from validators.compatibility.layers import Trace
from validators.compatibility.measured import StaticDifference
from validators.contracts.engine import Precision

UNIT_TOLERANCE = 0.01
"""How far from 1 the norm of a vector of unit length may be."""


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

    def lengths(self, output: str) -> tuple[float, float] | None:
        """The least and greatest Euclidean norm of an output over the items, where it ran."""
        for trace in self.traces:
            for layer in trace.layers:
                if layer.output and layer.name == output:
                    return min(layer.item_norm), max(layer.item_norm)
        return None


def compare_lengths(old: ExaminedVersion, new: ExaminedVersion) -> tuple[StaticDifference, ...]:
    """Embeddings of unit length in one version and not in the other, whatever made them so."""
    found = []
    for fact in new.graph.outputs if new.graph is not None else ():
        before, after = old.lengths(fact.name), new.lengths(fact.name)
        if before is not None and after is not None and _is_unit(before) is not _is_unit(after):
            what = f"normalisation.{fact.name}"
            found.append(StaticDifference(what, _length_text(before), _length_text(after)))
    return tuple(found)


def _is_unit(lengths: tuple[float, float]) -> bool:
    return all(abs(length - 1) < UNIT_TOLERANCE for length in lengths)


def _length_text(lengths: tuple[float, float]) -> str:
    if _is_unit(lengths):
        return "unit length"
    return f"lengths from {lengths[0]:.3g} to {lengths[1]:.3g}"


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
