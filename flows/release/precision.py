"""The precision of each deployed encoder: chosen by measurement where the file names several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prefect import task

from flows.interruption import told_to_end
from flows.progress import reporter
from flows.release.feeds import real_feeds
from flows.release.models import model_for
from flows.release.run import STEP, Release
from flows.release.values import Exported, PrecisionChoice
from services.engines.backends.catalogue import backend
from services.engines.precision.measure import Bench, Pace
from services.engines.precision.plan import make_table
from validators.contracts.dataset import Dataset
from validators.contracts.digest import canonical_json
from validators.contracts.engine import Precision, Tolerance
from validators.contracts.errors import Undecided
from validators.contracts.pipeline import EncoderEntry
from validators.contracts.slo import SloClass
from validators.contracts.verdict import Evidence, Outcome, Verdict, conclude
from validators.precision.choice import Choice, choose_precision
from validators.precision.words import GATE, NOT_MEASURED, Objective

PACE = Pace()
"""Rounds and time of one measurement, about a minute an encoder."""


@task(name="precision", **STEP)
def choose_precisions(
    release: Release,
    entries: Sequence[EncoderEntry],
    exported: Mapping[str, Exported],
    clean: Dataset,
) -> dict[str, PrecisionChoice]:
    """What the deployed engine of each encoder is to be, where the file leaves a choice.

    Encoders are measured one after the other: nothing else of the release runs beside them.
    """
    several = [entry for entry in entries if release.pipeline.measures_precision(entry)]
    if not several:
        return {}
    reporter().started(GATE)
    found: dict[str, PrecisionChoice] = {}
    for done, entry in enumerate(several):
        reporter().advanced(GATE, done, len(several), entry.name)
        found[entry.name] = _recalled(release, entry, exported[entry.name], clean)
    _judge(release, found)
    return found


def _recalled(
    release: Release, entry: EncoderEntry, exported: Exported, clean: Dataset
) -> PrecisionChoice:
    """The choice for one encoder. Times are not reproducible, so it is measured once and kept.

    What could not be decided, or was decided without a candidate that could not be measured, is
    not kept: another run measures again.
    """
    name, gates = release.pipeline.deploy_backend.backend, release.pipeline.gates
    probe, store = backend(name).probe(), release.workspace.store
    for_now: list[PrecisionChoice] = []

    def make() -> PrecisionChoice:
        choice = _choose(release, entry, exported, clean)
        if not _lasts(choice.verdict):
            for_now.append(choice)
            raise Undecided("a precision could not be chosen for good", where=entry.name)
        return choice

    try:
        return release.journal.perform(
            f"precision-{entry.name}",
            {
                "exported": exported,
                "precisions": entry.precisions,
                "profiles": entry.profiles,
                "dataset": clean.digest,
                "backend": [name, probe.version, probe.host],
                "tolerances": _tolerances(release, entry),
                "floor": gates.parity_task,
                "objective": _objective(release),
            },
            PrecisionChoice,
            make,
            needs=lambda value: [(store, item) for item in (value.onnx, value.table)],
        )
    except Undecided:
        if not for_now:
            raise
        return for_now[0]


def _lasts(verdict: Verdict) -> bool:
    undecided = verdict.outcome in (Outcome.INCONCLUSIVE, Outcome.ERROR)
    return not undecided and all(item.code != NOT_MEASURED for item in verdict.findings)


def _choose(
    release: Release, entry: EncoderEntry, exported: Exported, clean: Dataset
) -> PrecisionChoice:
    workspace, gates = release.workspace, release.pipeline.gates
    name, contract = release.pipeline.deploy_backend.backend, exported.contract
    feeds = real_feeds(release, clean, contract, entry.profiles)
    bench = Bench(
        contract, exported.onnx, entry.profiles, entry.source, release.base,
        workspace.store, workspace.home.folder("engines", "work"),
        real=feeds.items, held_out=feeds.held_out, cancel=told_to_end,
    )  # fmt: skip
    table = make_table(
        bench,
        name,
        entry.precisions,
        workshop=workspace.workshop,
        bake=lambda precision: model_for(
            release, entry, exported, name, precision,
            dataset=clean.digest, calibration=lambda: feeds.calibration,
        ),
        pace=PACE,
    )  # fmt: skip
    tolerances = _tolerances(release, entry)
    objective = _objective(release)
    chosen, verdict = choose_precision(table, tolerances, gates.parity_task, objective)
    limits = tuple((precision.value, limit) for precision, limit in tolerances.items())
    document = canonical_json(Choice(table, objective, gates.parity_task, limits, chosen, verdict))
    row = table.of(chosen) if chosen else None
    onnx = row.onnx if row is not None and row.onnx is not None else exported.onnx
    return PrecisionChoice(chosen or entry.precision, onnx, workspace.store.put(document), verdict)


def _judge(release: Release, found: Mapping[str, PrecisionChoice]) -> None:
    """One verdict over all encoders, with each table as evidence."""
    evidence = []
    for name, choice in found.items():
        document = release.workspace.store.get(choice.table)
        release.write_evidence(f"precision-{name}.json", document)
        evidence.append(Evidence(f"precision-{name}.json", choice.table))
    findings = [finding for choice in found.values() for finding in choice.verdict.findings]
    metrics = {
        f"{name}.{metric}": value
        for name, choice in found.items()
        for metric, value in choice.verdict.metrics
    }
    verdict = conclude(GATE, findings, examined=len(found), metrics=metrics)
    release.gate(verdict.with_evidence(*evidence))


def _tolerances(release: Release, entry: EncoderEntry) -> dict[Precision, Tolerance]:
    return {p: release.pipeline.gates.tolerance(p) for p in dict.fromkeys(entry.precisions)}


def _objective(release: Release) -> Objective:
    """Bulk work wants throughput; whoever waits for an answer wants latency."""
    offline = release.pipeline.slo.slo_class is SloClass.OFFLINE
    return Objective.THROUGHPUT if offline else Objective.LATENCY
