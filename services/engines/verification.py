"""Verifies one build: the source model and the engine, each in a child, over the same inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from services.children.phases import Progress
from services.children.process import Cancel, Limits, run_child
from services.children.scratch import scratch
from services.engines.backends.catalogue import backend
from services.engines.canary import record_canary
from services.engines.cases import Case, canary_case, make_cases
from services.engines.host import mismatch
from services.engines.parity import measure_deviations
from services.engines.references import References
from services.engines.requests import (
    REFERENCE_ONNX,
    REFERENCE_TORCH,
    RUN_ENGINE,
    EngineRunRequest,
    ReferenceRequest,
)
from services.engines.shelf import ObtainedEngine, Shelf
from services.engines.tensors import Arrays, digest_feeds, load_cases, save_cases
from validators.contracts.digest import Digest, canonical_json, digest_value
from validators.contracts.documents import load
from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import (
    EngineSpec,
    EngineState,
    HostIdentity,
    ParityRecord,
    Tolerance,
)
from validators.contracts.errors import NotFound, Refused, Unavailable
from validators.contracts.pipeline import EncoderSource, SourceKind
from validators.contracts.ports import Tensors
from validators.contracts.verdict import Evidence, Outcome, Verdict, Waiver, apply_waivers
from validators.parity import assess_parity


@dataclass(frozen=True, slots=True)
class VerifiedEngine:
    """The verdict, and the engine sealed VERIFIED where the verdict is PASS or WARN."""

    verdict: Verdict  # its evidence names the stored ParityRecord
    record: ParityRecord
    engine: ObtainedEngine | None


def running_host(spec: EngineSpec) -> HostIdentity:
    """This machine, where it can run the spec's engine.

    Raises:
        Unavailable: it cannot: such a build stays BUILT until a host that can verifies it.
    """
    found = backend(spec.backend).probe()
    problem = found.reason if found.host is None else mismatch(spec.target, found.host)
    if found.host is None or problem:
        raise Unavailable(
            f"this host cannot run the engine: {problem}",
            where=f"{spec.encoder} by {spec.backend} for {spec.target.name}",
            remedy=f"Verify it on a host with {spec.target.name}.",
        )
    return found.host


@dataclass(frozen=True, slots=True)
class _Task:
    """One verification: what is compared, on what, where."""

    shelf: Shelf
    workdir: Path
    built: ObtainedEngine
    contract: EncoderContract
    source: EncoderSource
    base: Path
    host: HostIdentity
    canary: Case
    cases: tuple[Case, ...]
    limits: Limits
    progress: Progress | None
    cancel: Cancel | None

    @property
    def inputs(self) -> Digest:
        return digest_feeds([case.feeds for case in self.cases])

    @property
    def reference_key(self) -> Digest:
        """The exported ONNX stands for the source: another module would have exported another."""
        model = self.built.manifest.source
        outputs = [item.name for item in self.contract.outputs]
        parts = [model, self.reference, self.inputs, self.canary_inputs, outputs]
        return digest_value("reference", parts)

    @property
    def canary_inputs(self) -> Digest:
        return digest_feeds([self.canary.feeds])

    @property
    def reference(self) -> str:
        if self.source.kind is SourceKind.TORCH:
            return f"torch {version('torch')}"
        return f"onnxruntime {version('onnxruntime')}, not optimised"


def verify_engine(
    shelf: Shelf,
    workdir: Path,
    built: ObtainedEngine,
    contract: EncoderContract,
    *,
    source: EncoderSource,
    base: Path,
    real_inputs: Sequence[Tensors],
    between: int,
    tolerance: Tolerance | None,
    waivers: Sequence[Waiver],
    now_s: float,
    limits: Limits,
    progress: Progress | None,
    cancel: Cancel | None,
) -> VerifiedEngine:
    """See `EngineWorkshop.verify`."""
    spec = built.manifest.spec
    task = _Task(
        shelf, workdir, built, contract, source, base, running_host(spec),
        canary_case(contract.inputs, spec.profiles),
        make_cases(contract.inputs, spec.profiles, between=between, real=real_inputs),
        limits, progress, cancel,
    )  # fmt: skip
    known = shelf.verified(built.manifest, task.host)
    record = _known_record(task, known)
    answer: Arrays = {}
    if record is None:
        known = None
        with scratch(workdir) as folder:
            record, answer = _measure(task, folder)
    digest = shelf.store.put(canonical_json(record))
    judged = assess_parity(
        record, spec.precision, tolerance, subject=f"{spec.encoder} on {spec.backend}"
    ).with_evidence(Evidence(f"parity-{spec.encoder}-{spec.backend}.json", digest))
    verdict = apply_waivers(judged, waivers, now_s)
    if verdict.outcome > Outcome.WARN:
        return VerifiedEngine(verdict, record, None)
    engine = known or _seal(task, digest, answer)
    return VerifiedEngine(verdict, record, engine)


def _known_record(task: _Task, known: ObtainedEngine | None) -> ParityRecord | None:
    """What was measured before, if on the same inputs against the same reference."""
    if known is None or known.manifest.parity is None:
        return None
    try:
        data = task.shelf.store.get(known.manifest.parity)
        record = load(ParityRecord, data, where="parity record")
    except (NotFound, Refused):
        return None
    same = (record.inputs, record.reference) == (task.inputs, task.reference)
    return record if same else None


def _measure(task: _Task, folder: Path) -> tuple[ParityRecord, Arrays]:
    """The record, and the engine's answer to the canary."""
    feeds = folder / "feeds.npz"
    save_cases(feeds, [task.canary.feeds, *(case.feeds for case in task.cases)])
    reference = _run_source(task, folder, feeds)
    canary, *answers = _run_engine(task, folder, feeds)
    record = ParityRecord(
        host=task.host,
        reference=task.reference,
        inputs=task.inputs,
        deviations=measure_deviations(task.cases, reference[1:], answers),
    )
    return record, canary


def _run_source(task: _Task, folder: Path, feeds: Path) -> list[Arrays]:
    """The source model's answers; kept for a while, as every backend is compared with the same."""
    references = References(task.workdir, task.shelf.signer, task.shelf.verifier)
    key = task.reference_key
    if (kept := references.find(key)) is not None:
        return kept
    out = folder / "reference.npz"
    location = task.source.location
    if task.source.kind is SourceKind.ONNX:
        model = folder / "model.onnx"
        task.shelf.store.fetch(task.built.manifest.source, model)
        location = str(model)
    request = ReferenceRequest(
        task.contract, location, str(task.base.resolve()), str(feeds), str(out)
    )
    run_child(
        REFERENCE_TORCH if task.source.kind is SourceKind.TORCH else REFERENCE_ONNX,
        request, folder, subject=task.contract.name,
        limits=task.limits, progress=task.progress, cancel=task.cancel,
    )  # fmt: skip
    answers = load_cases(out)
    references.keep(key, out)
    return answers


def _run_engine(task: _Task, folder: Path, feeds: Path) -> list[Arrays]:
    engine, out = folder / "engine", folder / "answers.npz"
    manifest = task.built.manifest
    task.shelf.store.fetch(manifest.engine, engine)
    run_child(
        RUN_ENGINE, EngineRunRequest(manifest, str(engine), str(feeds), str(out), 1), folder,
        subject=f"{manifest.spec.encoder} by {manifest.spec.backend}",
        limits=task.limits, progress=task.progress, cancel=task.cancel,
    )  # fmt: skip
    return load_cases(out)


def _seal(task: _Task, record: Digest, canary: Arrays) -> ObtainedEngine:
    verified = dataclasses.replace(
        task.built.manifest,
        state=EngineState.VERIFIED,
        parity=record,
        verified_on=task.host,
        canary_inputs=task.canary_inputs,
        canary_outputs=record_canary(canary),
    )
    return task.shelf.keep_verified(verified, task.host)
