"""One request fulfilled: an engine that covers it, built, verified, and put where it serves."""

from __future__ import annotations

from dataclasses import dataclass

from flows.builds.records import BackgroundBuild, keep_build
from flows.release.bundle import find
from flows.release.places import place_of
from flows.release.register import record_of
from flows.workspace import Workspace
from services.children.process import Cancel
from services.children.scratch import scratch
from services.engines.manifest import open_manifest
from services.engines.profiles.extension import extend_profiles
from services.engines.shelf import ObtainedEngine
from services.engines.specs import specify
from services.engines.verification import VerifiedEngine
from validators.contracts.builds import ShapeRequest
from validators.contracts.bundle import BundledEncoder
from validators.contracts.digest import Digest, short
from validators.contracts.documents import load
from validators.contracts.engine import EngineManifest, EngineSpec, EngineState
from validators.contracts.errors import Refused, Undecided
from validators.contracts.pipeline import EncoderEntry, Pipeline
from validators.contracts.verdict import GatePolicy, require_pass


@dataclass(frozen=True, slots=True)
class Fulfilled:
    """`live`: a gateway serves the engine now; else its next start takes it."""

    build: BackgroundBuild
    live: bool


@dataclass(frozen=True, slots=True)
class _Job:
    """What is known of the encoder that a request is about."""

    request: ShapeRequest
    pipeline: Pipeline
    entry: EncoderEntry
    bundled: BundledEncoder
    serving: EngineManifest


def fulfil(workspace: Workspace, request: ShapeRequest, cancel: Cancel | None = None) -> Fulfilled:
    """Build an engine that covers the request and all that is served now, and serve it.

    Every step finds what an earlier, killed one left: fulfilling again finishes it.

    Raises:
        NotFound: no such release or encoder.  BadInput: a shape outside the declared bounds.
        Blocked, Undecided: parity did not hold; nothing is installed.
        Otherwise as `EngineWorkshop.obtain`, `EngineWorkshop.verify`, `LocalTarget.replace_engine`.
    """
    job = _look_up(workspace, request)
    spec = _extended(job)
    built = workspace.background_workshop.obtain(
        spec, spec.onnx, job.bundled.contract,
        source_onnx=job.serving.source_onnx, cancel=cancel,
    )  # fmt: skip
    verified = _verify(workspace, job, built, cancel)
    build = _record(workspace, request, spec.key, verified)
    keep_build(workspace.store, build)
    if verified.engine is None:
        require_pass(verified.verdict, GatePolicy())
        raise Undecided("parity let the engine pass and sealed nothing", where=spec.key)
    return Fulfilled(build, _install(workspace, request, verified.engine))


def _look_up(workspace: Workspace, request: ShapeRequest) -> _Job:
    bundle = find(workspace, request.bundle)
    record = record_of(workspace, request.bundle)
    pipeline = load(Pipeline, workspace.store.get(record.pipeline), where=record.pipeline)
    bundled = bundle.encoder(request.encoder)
    deployed = bundle.deployed_engine(request.encoder).manifest
    serving = _replacement(workspace, request, bundled.onnx) or open_manifest(
        workspace.store.get(deployed), workspace.verifier
    )
    return _Job(request, pipeline, pipeline.encoder(request.encoder), bundled, serving)


def _replacement(
    workspace: Workspace, request: ShapeRequest, onnx: Digest
) -> EngineManifest | None:
    """The engine that replaces the bundle's already: a new one has to cover what it covers."""
    placed = workspace.deployments.replaced_engine(
        request.service, short(request.bundle), request.encoder
    )
    try:
        if placed is None:
            return None
        manifest = open_manifest(placed.manifest.read_bytes(), workspace.verifier)
    except (Refused, FileNotFoundError):
        return None
    ours = (manifest.spec.encoder, manifest.source, manifest.state)
    return manifest if ours == (request.encoder, onnx, EngineState.VERIFIED) else None


def _extended(job: _Job) -> EngineSpec:
    spec, contract = job.serving.spec, job.bundled.contract
    declared = job.entry.profiles[0] if job.entry.auto is not None else None
    profiles = extend_profiles(contract.inputs, spec.profiles, dict(job.request.sizes), declared)
    return specify(contract, spec.onnx, spec.backend, spec.precision, profiles, flags=spec.flags)


def _verify(
    workspace: Workspace, job: _Job, built: ObtainedEngine, cancel: Cancel | None
) -> VerifiedEngine:
    gates = job.pipeline.gates
    return workspace.background_workshop.verify(
        built,
        job.bundled.contract,
        job.entry.source,
        place_of(workspace, job.request.bundle),
        tolerance=gates.tolerance(built.manifest.spec.precision),
        waivers=gates.waivers,
        now_s=workspace.clock.wall_ns() / 1e9,
        cancel=cancel,
    )


def _record(
    workspace: Workspace, request: ShapeRequest, key: Digest, verified: VerifiedEngine
) -> BackgroundBuild:
    engine = verified.engine
    return BackgroundBuild(
        request,
        key,
        verified.verdict,
        engine.manifest.engine if engine else None,
        engine.sealed_digest if engine else None,
        workspace.clock.wall_ns() // 10**6,
    )


def _install(workspace: Workspace, request: ShapeRequest, engine: ObtainedEngine) -> bool:
    with scratch(workspace.home.folder("engines", "work")) as folder:
        path = folder / "engine"
        workspace.store.fetch(engine.manifest.engine, path)
        return workspace.deployments.replace_engine(
            request.service, short(request.bundle), request.encoder, engine.sealed, path
        )
