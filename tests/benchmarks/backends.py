"""Every backend on the same encoders in fp32, one thread: times, utilisation, build, cold start.

The reference is ONNX Runtime. Backends of one encoder run in interleaved rounds of fresh processes.
What has no hardware here is listed with its reason; TensorRT for RTX compiles ahead of time, and
its row has the phases of that.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from services.children.process import run_child
from services.children.scratch import scratch
from services.engines.backends.catalogue import backends
from services.engines.precision.measure import timed_cases
from services.engines.precision.measure_request import MEASURE_ENGINE, Measured, MeasureRequest
from services.engines.shelf import ObtainedEngine
from services.engines.specs import specify
from services.engines.tensors import save_cases
from tests.benchmarks.reference_encoders import Reference, exported
from tests.benchmarks.result import Machine, Options, Result
from tests.services.engines.conftest import Yard
from tests.services.engines.models import profile
from validators.contracts.engine import Precision
from validators.contracts.errors import ModalgateError
from validators.precision.timing import compare_rounds
from validators.precision.words import BatchTiming, summarise_calls

REFERENCE = "onnxruntime"
ROUNDS = 5
BUDGET_MS = 600.0
PROFILES = {
    "image": (profile(("pixels", (1, 3, 224, 224), (8, 3, 224, 224), (32, 3, 224, 224))),),
    "text": (
        profile(
            ("input_ids", (1, 2), (8, 16), (32, 128)),
            ("attention_mask", (1, 2), (8, 16), (32, 128)),
        ),
    ),
}
"""Wider than the service's own, to see batches of 8 and 32 where the contract allows them."""

AHEAD = ("SM89",)
NO_GPU = "no GPU here"
Engines = dict[str, ObtainedEngine]


def run(options: Options) -> Result:
    machine = Machine.now()
    rows: list[dict[str, Any]] = []
    ratios: list[float] = []
    each: dict[str, float | None] = {}
    with exported(PROFILES) as (yard, references):
        for reference in references:
            engines, listed = _build(yard, reference)
            measured = _measure(reference, engines, ROUNDS * options.repeats)
            timings = {name: _timings(reference, runs) for name, runs in measured.items()}
            for name, runs in measured.items():
                rows += _rows(reference, engines[name], runs, timings[name])
            rows += listed
            fastest = _fastest_over_reference(timings)
            if fastest is not None:
                ratios.append(fastest)
                each[f"fastest_over_reference_{reference.entry.name}"] = fastest
    ratio = statistics.median(ratios) if ratios else None
    return Result(
        "backends", machine, tuple(rows), {"fastest_over_reference": ratio, **each}, NOTES
    )


NOTES = (
    "fastest_over_reference: time of a call at batch 1, the fastest backend's over ONNX Runtime's; "
    "the median of the encoders",
    "utilisation: processor time over wall time of the one thread; below 1 others had the core",
    "copies are outputs that leave the engine's memory for the caller's; on a CPU nothing crosses "
    "to a device and nothing has to be waited for",
    f"CUDA-graph capture and device copies of GPU backends: null, {NO_GPU}",
)


def _build(yard: Yard, reference: Reference) -> tuple[Engines, list[dict[str, Any]]]:
    """Engines that run here, and rows of what only builds or is not there."""
    engines: Engines = {}
    listed: list[dict[str, Any]] = []
    bench = reference.bench
    for maker in backends():
        found = maker.probe()
        if not found.available:
            listed.append(_absent(reference, maker.name, found.reason))
            continue
        targets = ("host",) if found.can_run else AHEAD
        try:
            spec = specify(
                bench.contract, bench.onnx, maker.name, Precision.FP32, bench.profiles,
                targets=targets,
            )  # fmt: skip
            built = yard.workshop.obtain(spec, bench.onnx, bench.contract)
        except ModalgateError as error:
            listed.append(_absent(reference, maker.name, str(error)))
            continue
        if found.can_run:
            engines[maker.name] = built
        else:
            about = f"built for {', '.join(AHEAD)}, {NO_GPU}"
            listed.append(_absent(reference, maker.name, about) | _built(built))
    return engines, listed


def _measure(reference: Reference, engines: Engines, rounds: int) -> dict[str, list[Measured]]:
    bench = reference.bench
    cases = timed_cases(bench.contract, bench.profiles)
    found: dict[str, list[Measured]] = {name: [] for name in engines}
    with scratch(bench.workdir) as folder:
        save_cases(folder / "feeds.npz", [case.feeds for case in cases.values()])
        for number in range(rounds):
            names = list(engines) if number % 2 else list(reversed(engines))
            for name in names:
                found[name].append(_run(reference, engines[name], folder, len(cases)))
    return found


def _run(reference: Reference, engine: ObtainedEngine, folder: Path, timed: int) -> Measured:
    bench, manifest = reference.bench, engine.manifest
    path = folder / manifest.spec.backend
    if not path.is_file():
        bench.store.fetch(manifest.engine, path)
    request = MeasureRequest(
        manifest, str(path), str(folder / "feeds.npz"), timed, "",
        least_calls=4, most_calls=60, budget_ms=BUDGET_MS / timed,
    )  # fmt: skip
    return run_child(
        MEASURE_ENGINE, request, folder, subject=reference.entry.name, limits=bench.limits
    ).answer(Measured)


def _timings(reference: Reference, runs: list[Measured]) -> list[BatchTiming]:
    sizes = timed_cases(reference.bench.contract, reference.bench.profiles)
    return [
        summarise_calls(
            size,
            [run.cases[at].calls_ms for run in runs],
            statistics.mean(run.cases[at].cpu_ms for run in runs),
        )
        for at, size in enumerate(sizes)
    ]


def _rows(
    reference: Reference, engine: ObtainedEngine, runs: list[Measured], timings: list[BatchTiming]
) -> Iterator[dict[str, Any]]:
    for at, timing in enumerate(timings):
        firsts = statistics.median(run.cases[at].first_ms for run in runs)
        first_row = at == 0
        yield {
            "encoder": reference.entry.name,
            "backend": engine.manifest.spec.backend,
            "batch": timing.batch,
            "p50_ms": round(timing.p50_ms, 2),
            "p99_ms": round(timing.p99_ms, 2),
            "items_per_s": round(timing.throughput_per_s, 1),
            "cpu_ms": round(timing.cpu_ms, 2),
            "utilisation": round(timing.utilisation, 2),
            "calls": timing.calls,
            "first_call_ms": round(firsts, 2),
            **(_once(runs) | _built(engine) if first_row else {}),
        }


def _once(runs: list[Measured]) -> dict[str, Any]:
    """What an engine has once, whatever the batch."""
    return {
        "cold_start_ms": round(statistics.median(run.cold_ms for run in runs)),
        "load_ms": round(statistics.median(run.load_ms for run in runs), 1),
        "resident_mb": round(statistics.median(run.resident_bytes for run in runs) / 2**20, 1),
        "device_copies": 0,
        "synchronisations": 0,
        "output_copy_bytes": runs[0].answer_bytes,
        "cuda_graph": None,
    }


def _built(engine: ObtainedEngine) -> dict[str, Any]:
    phases = {phase.name: round(phase.duration_ms) for phase in engine.manifest.phases}
    return {
        "build_ms": " ".join(f"{name}={ms}" for name, ms in phases.items()),
        "engine_mb": round(engine.manifest.size_bytes / 2**20, 1),
    }


def _absent(reference: Reference, name: str, reason: str) -> dict[str, Any]:
    return {"encoder": reference.entry.name, "backend": name, "why": reason[:160]}


def _fastest_over_reference(timings: Mapping[str, list[BatchTiming]]) -> float | None:
    if REFERENCE not in timings:
        return None
    base = timings[REFERENCE][0].rounds_ms
    return min(compare_rounds(found[0].rounds_ms, base).ratio for found in timings.values())
