"""Every precision of the reference encoders, measured side by side, and what the planner picks.

Candidates of one encoder run in interleaved rounds of fresh processes, one thread each, so ratios
within an encoder and backend are of the same minutes. Beside each time stands what the bandwidth
model says is the least it can take on this machine, whose roofs are measured in the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from services.engines.backends.catalogue import backend
from services.engines.precision.bake import bake_encoder, needs_baking
from services.engines.precision.measure import Pace, measure_machine
from services.engines.precision.measure_request import Machine
from services.engines.precision.plan import build_candidates, make_table
from tests.benchmarks.reference_encoders import Reference, exported
from tests.benchmarks.result import Machine as Host
from tests.benchmarks.result import Options, Result
from tests.services.engines.conftest import Yard
from validators.contracts.digest import Digest
from validators.contracts.engine import TOLERANCES, Precision
from validators.contracts.errors import ModalgateError
from validators.precision.choice import TASK_FLOOR, choose_precision, compare
from validators.precision.layouts import counted_twice, held_for, matching_both, matching_useful
from validators.precision.words import (
    BatchTiming,
    Objective,
    PrecisionMeasurement,
    PrecisionTable,
)

PLANS: Mapping[str, tuple[Precision, ...]] = {
    "openvino": tuple(Precision),
    "onnxruntime": (Precision.FP32, Precision.INT8, Precision.INT4),
}
"""The other backends compile for GPUs; ONNX Runtime computes halves in fp32 on a CPU."""

SHORT: Mapping[str, tuple[Precision, ...]] = {
    "openvino": (Precision.FP32, Precision.FP16, Precision.BF16),
}
WHOLE = ("image", "text")
"""These in every precision; the speech pair in those of SHORT, unless --peers all is given."""

PACE = Pace(rounds=5, budget_ms=120, most_calls=60)
AT_ONCE = 2
Plans = Mapping[str, tuple[Precision, ...]]
Models = Mapping[tuple[str, Precision], Digest | ModalgateError]


def run(options: Options) -> Result:
    host = Host.now()
    rows: list[dict[str, Any]] = []
    tables: list[PrecisionTable] = []
    machines: list[Machine] = []
    pace = Pace(PACE.rounds * options.repeats, PACE.budget_ms, PACE.most_calls)
    with exported() as (yard, references):
        plans = [(item, _plans(item, whole=options.peers == "all")) for item in references]
        models = _bake(yard, plans)
        _build(yard, plans, models)
        for reference, wanted in plans:
            machines.append(measure_machine(reference.bench))
            for name, precisions in wanted.items():
                table = make_table(
                    reference.bench, name, precisions, workshop=yard.workshop,
                    bake=_baked(models, reference, name), pace=pace, machine=machines[-1],
                )  # fmt: skip
                tables.append(table)
                rows += _rows(table)
    return Result("precision", host, tuple(rows), _ratios(tables), _notes(tables, machines))


def _plans(reference: Reference, *, whole: bool) -> Plans:
    """The precisions to measure, for each backend that runs here."""
    chosen = PLANS if whole or reference.entry.name in WHOLE else SHORT
    return {name: wanted for name, wanted in chosen.items() if backend(name).probe().can_run}


def _build(yard: Yard, plans: list[tuple[Reference, Plans]], models: Models) -> None:
    """Engines of all, two at a time; `make_table` then finds them."""
    jobs = [(item, name, wanted) for item, plan in plans for name, wanted in plan.items()]

    def build(job: tuple[Reference, str, tuple[Precision, ...]]) -> None:
        reference, name, wanted = job
        bake = _baked(models, reference, name)
        build_candidates(reference.bench, name, wanted, yard.workshop, bake)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(build, jobs))


def _bake(yard: Yard, plans: list[tuple[Reference, Plans]]) -> Models:
    """Every baked model once, for all backends that need it, two at a time."""
    wanted = [
        (reference, precision)
        for reference, plan in plans
        for precision in Precision
        if any(precision in ps and needs_baking(name, precision) for name, ps in plan.items())
    ]

    def bake(job: tuple[Reference, Precision]) -> Digest | ModalgateError:
        reference, precision = job
        bench = reference.bench
        source = yard.root / f"{bench.contract.name}-{precision.value}.onnx"
        yard.store.fetch(bench.onnx, source)
        try:
            made: Path = bake_encoder(
                source, bench.contract, precision, reference.calibration, bench.workdir,
                profiles=bench.profiles, limits=bench.limits,
            )  # fmt: skip
        except ModalgateError as error:
            return error
        return yard.store.put_file(made)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        made = list(pool.map(bake, wanted))
    names = [(reference.entry.name, precision) for reference, precision in wanted]
    return dict(zip(names, made, strict=True))


def _baked(models: Models, reference: Reference, name: str) -> Callable[[Precision], Digest]:
    def bake(precision: Precision) -> Digest:
        if not needs_baking(name, precision):
            return reference.bench.onnx
        found = models[reference.entry.name, precision]
        if isinstance(found, ModalgateError):
            raise found
        return found

    return bake


def _rows(table: PrecisionTable) -> Iterator[dict[str, Any]]:
    chosen, verdict = choose_precision(table, TOLERANCES, TASK_FLOOR, Objective.LATENCY)
    wide = table.of(Precision.FP32)
    for row in table.measurements:
        about = f"{table.subject}, {row.precision.value}"
        said = [f.code for f in verdict.findings if f.subject.partition(", ")[0] == table.subject
                and f.subject.startswith(about)]  # fmt: skip
        yield {
            "encoder": table.encoder,
            "backend": table.backend,
            "precision": row.precision.value,
            "said": "chosen" if row.precision is chosen else " ".join(said),
            **(_figures(row, wide) if row.measured else {"why": row.refused[:160]}),
        }


def _figures(row: PrecisionMeasurement, wide: PrecisionMeasurement | None) -> dict[str, Any]:
    one, most = row.timing(Objective.LATENCY), row.timing(Objective.THROUGHPUT)
    beside = compare(row, wide, Objective.LATENCY) if wide and wide.measured else None
    tasks = "; ".join(f"{t.kept}/{t.items} [{t.low:.2f}, {t.high:.2f}]" for t in row.tasks)
    return {
        "p50_ms": round(one.p50_ms, 2),
        "p99_ms": round(one.p99_ms, 2),
        "cpu_ms": round(one.cpu_ms, 2),
        "least_ms": round(one.predicted_ms, 2) if one.predicted_ms else None,
        "over_fp32": beside and f"{beside.ratio:.2f} ({beside.low:.2f}, {beside.high:.2f})",
        **(_largest(most) if most is not one else {}),
        "items_per_s": round(most.throughput_per_s, 1),
        "resident_mb": round((row.resident_bytes or 0) / 2**20, 1),
        "engine_mb": round((row.engine_bytes or 0) / 2**20, 1),
        "max_rel": float(f"{row.max_rel:.2g}"),
        "cosine_min": row.cosine_min and round(row.cosine_min, 6),
        "tasks_kept": tasks,
        "really": row.really_share and round(row.really_share, 2),
        "build_ms": round(row.build_ms or 0),
    }


def _largest(timing: BatchTiming) -> dict[str, Any]:
    """The same at the profile's largest batch."""
    return {
        f"b{timing.batch}_p50_ms": round(timing.p50_ms, 2),
        f"b{timing.batch}_cpu_ms": round(timing.cpu_ms, 2),
        f"b{timing.batch}_least_ms": timing.predicted_ms and round(timing.predicted_ms, 2),
    }


def _ratios(tables: list[PrecisionTable]) -> dict[str, float | None]:
    """Speed of the chosen precision over fp32, by encoder and backend; worst deviation chosen."""
    speedups: dict[str, float] = {}
    parity: list[float] = []
    for table in tables:
        chosen, _ = choose_precision(table, TOLERANCES, TASK_FLOOR, Objective.LATENCY)
        row, wide = table.of(chosen) if chosen else None, table.of(Precision.FP32)
        if row is None or wide is None or row.max_rel is None:
            continue
        parity.append(row.max_rel / TOLERANCES[row.precision].max_rel)
        name = f"speedup_{table.encoder}_{table.backend}"
        speedups[name] = 1 / compare(row, wide, Objective.LATENCY).ratio
    return {
        "speedup_best_over_fp32": max(speedups.values(), default=None),
        "parity_worst": max(parity, default=None),
        **speedups,
    }


def _notes(tables: list[PrecisionTable], machines: list[Machine]) -> tuple[str, ...]:
    read = sorted({pair for machine in machines for pair in machine.read})
    rates = ", ".join(f"{size / 2**20:.1f} MiB {rate / 1e9:.0f}" for size, rate in read)
    flops = ", ".join(f"{p.value} {rate / 1e9:.0f}" for p, rate in machines[-1].flops)
    lines = " ".join(f"{machine.line_over_word:.2f}" for machine in machines)
    both = f"{len(matching_useful())} layouts are 31.25 % useful, {len(matching_both())} give both"
    twice, held = counted_twice(0.3125), held_for(0.3125, 0.39)
    return (
        "parity_worst is the share of its tolerance that a chosen engine uses, the worst of them",
        f"read, GB/s by working set: {rates}",
        f"multiply, GFlop/s: {flops}",
        f"one word of every line over whole lines, out of cache: {lines}",
        f"4-bit in 64-byte lines: {both}; 0.39 needs {held:.2f} B a weight; "
        f"counted twice it is {twice:.4f}",
        f"real items: { {table.encoder: table.real_items for table in tables} }",
    )
