"""The encoder row of a release: contracts, export, engines, parity."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from prefect import task

from flows.interruption import told_to_end
from flows.progress import reporter
from flows.release.feeds import real_feeds
from flows.release.models import model_for
from flows.release.run import STEP, Release
from flows.release.sources import encoder_digest, read_asset
from flows.release.values import EngineBuild, Exported, PrecisionChoice
from services.children.scratch import scratch
from services.engines.export.encoder import export_encoder
from services.engines.shelf import ObtainedEngine
from services.engines.specs import specify
from validators.compatibility.composition import check_composition
from validators.contracts.bundle import BundledEngine
from validators.contracts.dataset import Dataset
from validators.contracts.digest import Digest
from validators.contracts.engine import EngineState, Precision
from validators.contracts.pipeline import BackendPlan, EncoderEntry
from validators.contracts.verdict import (
    Finding,
    Outcome,
    Verdict,
    conclude,
)

PARITY = "parity"
_HOST = ("host",)


@dataclass(frozen=True, slots=True)
class EngineWork:
    """One engine to make: of which encoder, by which backend.

    `choice` where its precision was measured; `clean` is what a baked one is calibrated on.
    """

    entry: EncoderEntry
    exported: Exported
    plan: BackendPlan
    clean: Dataset
    choice: PrecisionChoice | None = None

    @property
    def precision(self) -> Precision:
        if self.choice is not None:
            return self.choice.precision
        return self.plan.precision or self.entry.precision

    @property
    def label(self) -> str:
        return f"{self.entry.name} by {self.plan.backend}"


@task(name="contracts", **STEP)
def check_contracts(release: Release) -> None:
    """Whether the encoders fit together, from their contracts alone."""
    reporter().started("contracts")
    release.gate(check_composition(release.pipeline))


@task(name="export", **STEP)
def export(release: Release, entry: EncoderEntry) -> Exported:
    """The encoder's source as a checked ONNX, its assets in the store."""
    step = f"export {entry.name}"
    reporter().started(step)
    store = release.workspace.store
    assets = tuple(
        (name, store.put(read_asset(reference, release.base)))
        for name, reference in entry.asset_files
    )
    preprocess = dataclasses.replace(entry.contract.preprocess, assets=assets)
    contract = dataclasses.replace(entry.contract, preprocess=preprocess)
    found = release.journal.perform(
        f"export-{entry.name}",
        {"entry": entry, "assets": assets, "source": encoder_digest(entry, release.base)},
        Exported,
        lambda: Exported(contract, _export(release, entry)),
        needs=lambda value: [(store, value.onnx)],
    )
    reporter().finished(step)
    return found


@task(name="engine", **STEP)
def build_engine(release: Release, work: EngineWork) -> tuple[EngineBuild, Verdict | None]:
    """One engine, built or found by its key, and verified where this host can run it."""
    step = f"engine {work.label}"
    reporter().started(step)
    measured = release.journal.measure(step)
    entry, plan, contract = work.entry, work.plan, work.exported.contract
    model = _model(release, work)
    spec = specify(
        contract, model, plan.backend, work.precision, entry.profiles, targets=plan.targets
    )
    workshop = release.workspace.workshop
    built = workshop.obtain(
        spec, model, contract, source_onnx=work.exported.onnx, cancel=told_to_end
    )
    verdict: Verdict | None = None
    engine = built
    if plan.targets == _HOST:
        verified = workshop.verify(
            built,
            contract,
            entry.source,
            release.base,
            tolerance=release.pipeline.gates.tolerance(spec.precision),
            waivers=release.pipeline.gates.waivers,
            now_s=release.workspace.clock.wall_ns() / 1e9,
            cancel=told_to_end,
        )
        verdict, engine = verified.verdict, verified.engine or built
    measured(built.cached)
    reporter().finished(step, "found" if built.cached else "built")
    return EngineBuild(bundled_engine(engine, deploy=plan.deploy), built.cached), verdict


@task(name="parity", **STEP)
def judge_parity(release: Release, verdicts: list[Verdict]) -> None:
    """One verdict over all engines; plans for other hardware are listed, not judged."""
    reporter().started(PARITY)
    findings = [finding for verdict in verdicts for finding in verdict.findings]
    findings += [
        Finding(
            PARITY, "built-only",
            f"{build.engine.encoder} by {build.engine.backend} for {build.engine.target.name}",
            Outcome.WARN, "BUILT", "VERIFIED",
            f"Verify it on a host with {build.engine.target.name} before deploying it there.",
        )
        for build in release.engines
        if build.engine.state is EngineState.BUILT and not build.engine.deploy
    ]  # fmt: skip
    metrics = {
        "engines": float(len(release.engines)),
        "engines_verified": float(len(verdicts)),
        "max_rel_worst": max(
            (value for v in verdicts for name, value in v.metrics if name == "max_rel"), default=0.0
        ),
    }
    evidence = tuple(item for verdict in verdicts for item in verdict.evidence)
    evidence += tuple(release.plans)
    release.gate(
        conclude(PARITY, findings, examined=len(verdicts), metrics=metrics).with_evidence(*evidence)
    )


def _model(release: Release, work: EngineWork) -> Digest:
    """The ONNX to compile: as the precision was measured, or baked where the backend needs it."""
    if work.choice is not None:
        return work.choice.onnx
    entry, contract, clean = work.entry, work.exported.contract, work.clean
    return model_for(
        release, entry, work.exported, work.plan.backend, work.precision, dataset=clean.digest,
        calibration=lambda: real_feeds(release, clean, contract, entry.profiles).calibration,
    )  # fmt: skip


def _export(release: Release, entry: EncoderEntry) -> Digest:
    with scratch(release.workspace.home.folder("engines", "work")) as folder:
        path = export_encoder(entry, release.base, folder, cancel=told_to_end)
        return release.workspace.store.put_file(path)


def bundled_engine(engine: ObtainedEngine, *, deploy: bool) -> BundledEngine:
    """An obtained engine as a bundle names it."""
    manifest = engine.manifest
    return BundledEngine(
        encoder=manifest.spec.encoder,
        backend=manifest.spec.backend,
        target=manifest.spec.target,
        precision=manifest.spec.precision,
        state=manifest.state,
        deploy=deploy,
        key=manifest.key,
        engine=manifest.engine,
        manifest=engine.sealed_digest,
    )
