"""Makes the table of one encoder: every candidate built, verified, measured side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from services.children.errors import BuildCancelled
from services.engines.precision.computed import read_computed, share_of
from services.engines.precision.measure import (
    Bench,
    Candidate,
    Pace,
    measure_candidates,
    measure_machine,
    refusal,
)
from services.engines.precision.measure_request import Machine
from services.engines.shelf import ObtainedEngine
from services.engines.specs import specify
from services.engines.verification import running_host
from services.engines.workshop import EngineWorkshop
from validators.contracts.digest import Digest
from validators.contracts.engine import Precision
from validators.contracts.errors import ModalgateError
from validators.precision.words import PrecisionMeasurement, PrecisionTable

Bake = Callable[[Precision], Digest]
"""The ONNX to compile for a precision: the encoder's own where the backend needs no other."""


@dataclass(frozen=True, slots=True)
class Built:
    """What has to be there before anything is timed."""

    candidates: tuple[Candidate, ...]
    refused: tuple[PrecisionMeasurement, ...]


def make_table(
    bench: Bench,
    backend: str,
    precisions: Sequence[Precision],
    *,
    workshop: EngineWorkshop,
    bake: Bake,
    pace: Pace | None = None,
    machine: Machine | None = None,
) -> PrecisionTable:
    """Measure the candidates on this host. A candidate that cannot be built is a row with why.

    `machine` where its roofs were measured just before; else they are measured here.

    Raises:
        Unavailable: this host cannot run the backend at all.  BuildCancelled.
    """
    host = running_host(
        specify(bench.contract, bench.onnx, backend, Precision.FP32, bench.profiles)
    )
    built = build_candidates(bench, backend, precisions, workshop, bake)
    found = machine or measure_machine(bench)
    rows = measure_candidates(bench, built.candidates, pace, found) if built.candidates else ()
    return PrecisionTable(
        encoder=bench.contract.name,
        backend=backend,
        target=host,
        source=bench.onnx,
        measurements=(*rows, *built.refused),
        real_items=len(bench.real),
        bandwidth_gb_s=round(found.read[-1][1] / 1e9, 3) if found.read else None,
    )


def build_candidates(
    bench: Bench,
    backend: str,
    precisions: Sequence[Precision],
    workshop: EngineWorkshop,
    bake: Bake,
) -> Built:
    """Build and verify each precision; what is refused says why, and whether that lasts."""
    candidates, refused = list[Candidate](), list[PrecisionMeasurement]()
    for precision in dict.fromkeys(precisions):
        try:
            candidates.append(_build(bench, backend, precision, workshop, bake(precision)))
        except BuildCancelled:
            raise
        except ModalgateError as error:
            refused.append(refusal(precision, error))
    return Built(tuple(candidates), tuple(refused))


def _build(
    bench: Bench, backend: str, precision: Precision, workshop: EngineWorkshop, onnx: Digest
) -> Candidate:
    """One candidate. Off parity or not, its deviations are wanted: the choice judges them."""
    spec = specify(bench.contract, onnx, backend, precision, bench.profiles)
    built: ObtainedEngine = workshop.obtain(
        spec, onnx, bench.contract, source_onnx=bench.onnx,
        progress=bench.progress, cancel=bench.cancel,
    )  # fmt: skip
    verified = workshop.verify(
        built, bench.contract, bench.source, bench.base,
        progress=bench.progress, cancel=bench.cancel,
    )  # fmt: skip
    computed = read_computed(bench.store.get(built.manifest.build_log))
    share = share_of(computed, precision) if computed else None
    return Candidate(precision, built.manifest, verified.record.deviations, share)
