"""Measures an encoder in several precisions side by side: one fresh child per engine and round.

Rounds are interleaved, and each starts with another candidate, so that a busy minute of the machine
hits all alike and rounds can be compared in pairs. Children run one at a time, at normal priority.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from services.children.errors import BuildCancelled, ChildTooLarge
from services.children.phases import Progress
from services.children.process import Cancel, Limits, run_child
from services.children.scratch import scratch
from services.engines.cases import Case, make_case, make_cases, ranges
from services.engines.parity import measure_deviations
from services.engines.precision.kept import tasks_kept
from services.engines.precision.measure_request import (
    MEASURE_ENGINE,
    MEASURE_MACHINE,
    Machine,
    MachineRequest,
    Measured,
    MeasureRequest,
)
from services.engines.requests import REFERENCE_ONNX, REFERENCE_TORCH, ReferenceRequest
from services.engines.tensors import Arrays, load_cases, save_cases
from validators.contracts.digest import Digest
from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import Deviation, EngineManifest, Precision, ShapeProfile
from validators.contracts.errors import BadInput, ModalgateError, Refused
from validators.contracts.pipeline import EncoderSource, SourceKind
from validators.contracts.ports import ObjectStore, Tensors
from validators.precision.bandwidth import LAYOUTS, Roofs, moved_bytes, predict_ms
from validators.precision.words import PrecisionMeasurement, TaskMetric, summarise_calls

ROUNDS = 8
"""Seven have to agree that one is faster (`validators.precision.timing`)."""

SEEDED_ITEMS = 16
"""Items that stand in where no real ones are at hand."""


_TIMED, _ALL = "timed.npz", "all.npz"


@dataclass(frozen=True, slots=True)
class Pace:
    """How long measuring takes: rounds, and wall time for each batch size of a round."""

    rounds: int = ROUNDS
    budget_ms: float = 400.0
    most_calls: int = 100


@dataclass(frozen=True, slots=True)
class Candidate:
    """One engine to measure, with what is known of it from building and verifying."""

    precision: Precision
    manifest: EngineManifest
    deviations: tuple[Deviation, ...]
    really_share: float | None = None  # of its products, computed in this precision

    @property
    def calibrated(self) -> bool:
        """Whether its ONNX was baked, which looks at calibration data."""
        return self.manifest.source_onnx is not None


@dataclass(frozen=True, slots=True)
class Bench:
    """One encoder on the bench: what it is, and where its parts lie."""

    contract: EncoderContract
    onnx: Digest  # the encoder's own, checked, in the store
    profiles: tuple[ShapeProfile, ...]
    source: EncoderSource
    base: Path
    store: ObjectStore
    workdir: Path
    real: tuple[Tensors, ...] = ()
    held_out: tuple[int, ...] | None = None  # which of `real` no calibration saw; None: all
    limits: Limits = dataclasses.field(default_factory=lambda: Limits(niceness=0))
    progress: Progress | None = None
    cancel: Cancel | None = None

    @property
    def items(self) -> tuple[Tensors, ...]:
        """What tasks are measured on: real items, else seeded ones of the sizes served most."""
        if self.real:
            return self.real
        cases = make_cases(self.contract.inputs, self.profiles[:1], between=SEEDED_ITEMS)
        return tuple(case.feeds for case in cases if case.name.startswith("between"))


def timed_cases(contract: EncoderContract, profiles: Sequence[ShapeProfile]) -> dict[int, Case]:
    """Cases by batch size. Other dimensions stand at the optimum of the profile they come from.

    The batch is the leading dimension where the contract gives it a name; else there is one case.
    """
    found: dict[int, dict[str, tuple[int, ...]]] = {}
    named = {spec.name: isinstance(spec.shape[0], str) for spec in contract.inputs if spec.shape}
    for profile in profiles:
        spans = ranges(contract.inputs, profile)
        batched = [span for span in spans if named.get(span.tensor)]
        corners = ("minimum", "optimum", "maximum") if batched else ("optimum",)
        for corner in corners:
            size = getattr(batched[0], corner)[0] if batched else 1
            shapes = {
                span.tensor: (size, *span.optimum[1:]) if span in batched else span.optimum
                for span in spans
            }
            found.setdefault(size, shapes)
    best = profiles[0].ranges[0].optimum[0] if profiles[0].ranges else 1
    chosen = sorted({min(found), max(found), *({best} & found.keys())})
    return {size: make_case(contract.inputs, found[size], f"timed batch {size}") for size in chosen}


def measure_candidates(
    bench: Bench,
    candidates: Sequence[Candidate],
    pace: Pace | None = None,
    machine: Machine | None = None,
) -> tuple[PrecisionMeasurement, ...]:
    """The candidates, measured. What fails while it runs is refused with its reason, not raised.

    Raises:
        What running the source model raises; BuildCancelled.
    """
    pace = pace or Pace()
    with scratch(bench.workdir) as folder:
        timed, items = timed_cases(bench.contract, bench.profiles), bench.items
        calls = [case.feeds for case in timed.values()]
        save_cases(folder / _TIMED, calls)
        save_cases(folder / _ALL, [*calls, *items])
        wanted = run_source(bench, items, folder)
        rounds = _Rounds(bench, pace, folder, timed=len(timed))
        for number in range(pace.rounds):
            for item in _turned(candidates, number):
                rounds.run(item)
        found = []
        for item in candidates:
            if item.precision in rounds.failed:
                found.append(rounds.failed[item.precision])
                continue
            row = _summarise(list(timed), item, rounds.runs[item.precision], machine)
            answers = rounds.answers[item.precision]
            cases = [Case(f"item {at}", dict(feeds)) for at, feeds in enumerate(items)]
            deviations = [*item.deviations, *measure_deviations(cases, wanted, answers)]
            judged = bench.held_out if bench.real and item.calibrated else None
            tasks = tasks_kept(bench.contract, wanted, answers, judged)
            found.append(_judged(row, deviations, tasks))
        return tuple(found)


def refusal(precision: Precision, error: ModalgateError) -> PrecisionMeasurement:
    """The row of a candidate that this error refused.

    Only what is said of the input lasts. A child that died or was stopped at a limit, a disk that
    was full, a dependency that was down: another look may find an engine.
    """
    lasting = isinstance(error, BadInput | Refused) and not isinstance(error, ChildTooLarge)
    return PrecisionMeasurement(precision, refused=str(error), transient=not lasting)


class _Rounds:
    """The children that ran, and what came of each candidate."""

    def __init__(self, bench: Bench, pace: Pace, folder: Path, *, timed: int) -> None:
        self.runs: dict[Precision, list[Measured]] = {}
        self.answers: dict[Precision, list[Arrays]] = {}
        self.failed: dict[Precision, PrecisionMeasurement] = {}
        self._bench, self._pace, self._folder, self._timed = bench, pace, folder, timed

    def run(self, item: Candidate) -> None:
        """One round of one candidate, in a fresh child."""
        if item.precision in self.failed:
            return
        try:
            measured = self._measure(item)
        except BuildCancelled:
            raise
        except ModalgateError as error:
            self.failed[item.precision] = refusal(item.precision, error)
            return
        self.runs.setdefault(item.precision, []).append(measured)
        if item.precision not in self.answers:
            self.answers[item.precision] = load_cases(self._folder / "answers.npz")

    def _measure(self, item: Candidate) -> Measured:
        """The items are answered in the first round only: an engine answers alike every time."""
        bench, folder, pace = self._bench, self._folder, self._pace
        feeds = folder / (_TIMED if item.precision in self.answers else _ALL)
        engine = folder / f"engine-{item.precision.value}"
        if not engine.is_file():
            bench.store.fetch(item.manifest.engine, engine)
        request = MeasureRequest(
            item.manifest, str(engine), str(feeds), self._timed,
            str(folder / "answers.npz"),
            most_calls=pace.most_calls, budget_ms=pace.budget_ms,
        )  # fmt: skip
        return run_child(
            MEASURE_ENGINE, request, folder,
            subject=f"{bench.contract.name} in {item.precision.value}", limits=bench.limits,
            progress=bench.progress, cancel=bench.cancel,
        ).answer(Measured)  # fmt: skip


def measure_machine(bench: Bench) -> Machine:
    """This machine's roofs, read at the sizes that the encoder's weights have in each width."""
    timed = timed_cases(bench.contract, bench.profiles)
    shapes = tuple((name, array.shape) for name, array in timed[min(timed)].feeds.items())
    with scratch(bench.workdir) as folder:
        model = folder / "model.onnx"
        bench.store.fetch(bench.onnx, model)

        def ask(sizes: tuple[int, ...]) -> Machine:
            return run_child(
                MEASURE_MACHINE, MachineRequest(str(model), shapes, sizes), folder,
                subject=bench.contract.name, limits=bench.limits,
                progress=bench.progress, cancel=bench.cancel,
            ).answer(Machine)  # fmt: skip

        weights = sum(layer.weights for layer in ask(()).layers)
        return ask(tuple(sorted({_set_bytes(weights, precision) for precision in Precision})))


def predicted_ms(machine: Machine, precision: Precision, batch: int, smallest: int = 1) -> float:
    """What the bandwidth model says of one call: a bound from below. `smallest`: items counted."""
    size = _set_bytes(sum(layer.weights for layer in machine.layers), precision)
    rate = next((rate for at, rate in machine.read if at >= size), machine.read[-1][1])
    roofs = Roofs(rate, machine.flops)
    return predict_ms(machine.layers, precision, batch // smallest, roofs)


def _set_bytes(weights: int, precision: Precision) -> int:
    """The working set of the weights: which cache holds it decides how fast it is read."""
    return max(1 << 16, round(weights * moved_bytes(LAYOUTS[precision])))


def run_source(bench: Bench, items: Sequence[Tensors], folder: Path) -> list[Arrays]:
    """The source model's own answers. An ONNX source is run as it was checked, not optimised."""
    feeds, out = folder / "items.npz", folder / "source.npz"
    save_cases(feeds, items)
    task, location = REFERENCE_TORCH, bench.source.location
    if bench.source.kind is SourceKind.ONNX:
        model = folder / "source.onnx"
        bench.store.fetch(bench.onnx, model)
        task, location = REFERENCE_ONNX, str(model)
    run_child(
        task,
        ReferenceRequest(
            bench.contract, location, str(bench.base.resolve()), str(feeds), str(out)
        ),
        folder, subject=bench.contract.name, limits=bench.limits,
        progress=bench.progress, cancel=bench.cancel,
    )  # fmt: skip
    return load_cases(out)


def _turned(candidates: Sequence[Candidate], number: int) -> Sequence[Candidate]:
    """Another one is first in every round."""
    start = number % max(1, len(candidates))
    return [*candidates[start:], *candidates[:start]]


def _summarise(
    sizes: Sequence[int], item: Candidate, runs: Sequence[Measured], machine: Machine | None
) -> PrecisionMeasurement:
    timings = tuple(
        summarise_calls(
            size,
            [run.cases[at].calls_ms for run in runs],
            statistics.mean(run.cases[at].cpu_ms for run in runs),
            predicted_ms(machine, item.precision, size, sizes[0]) if machine else None,
        )
        for at, size in enumerate(sizes)
    )
    return PrecisionMeasurement(
        item.precision,
        onnx=item.manifest.spec.onnx,
        engine=item.manifest.engine,
        timings=timings,
        load_ms=statistics.median(run.load_ms for run in runs),
        first_call_ms=statistics.median(run.cases[0].first_ms for run in runs),
        resident_bytes=round(statistics.median(run.resident_bytes for run in runs)),
        peak_bytes=max(run.peak_bytes for run in runs),
        engine_bytes=item.manifest.size_bytes,
        build_ms=sum(phase.duration_ms for phase in item.manifest.phases),
        really_share=item.really_share,
    )


def _judged(
    row: PrecisionMeasurement, deviations: Sequence[Deviation], tasks: tuple[TaskMetric, ...]
) -> PrecisionMeasurement:
    return dataclasses.replace(
        row,
        max_rel=max((d.max_rel for d in deviations), default=None),
        cosine_min=min((d.cosine_min for d in deviations), default=None),
        nonfinite=sum(d.nonfinite for d in deviations),
        cases=len({d.case for d in deviations}),
        tasks=tasks,
    )
