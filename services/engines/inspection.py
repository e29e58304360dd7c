"""Whether a stored engine still is what was verified: signature, bytes, and its answer here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from services.children.errors import BuildCancelled, ChildCrashed
from services.children.process import Cancel, Limits, run_child
from services.children.scratch import scratch
from services.engines.backends.catalogue import backend
from services.engines.canary import check_canary
from services.engines.cases import canary_case
from services.engines.host import mismatch
from services.engines.manifest import open_manifest
from services.engines.requests import RUN_ENGINE, EngineRunRequest
from services.engines.tensors import digest_feeds, load_cases, save_cases
from validators.contracts.digest import short
from validators.contracts.engine import EngineManifest, EngineState
from validators.contracts.errors import ModalgateError, NotFound, Refused
from validators.contracts.ports import ObjectStore, Verifier
from validators.contracts.verdict import Finding, Outcome

GATE = "engines"
ANEW = "Release again: it is built anew."
"""What mends an engine that something uses; what nothing uses may simply go."""


def inspect_engine(
    sealed: bytes,
    store: ObjectStore,
    verifier: Verifier,
    workdir: Path,
    *,
    limits: Limits | None = None,
    cancel: Cancel | None = None,
) -> tuple[Finding, ...]:
    """What is wrong with one engine of the store, or cannot be told here; nothing where it holds.

    FAIL: damaged, forged, or it answers something else than when it was verified. INCONCLUSIVE:
    it should run here and could not be tried. WARN: intact, for other hardware or never verified.

    Raises:
        BuildCancelled.  Unavailable: the store is down.
    """
    try:
        manifest = open_manifest(sealed, verifier)
    except Refused as error:
        return (_finding("manifest", "a manifest", Outcome.FAIL, error.what),)
    with scratch(workdir) as folder:
        return tuple(_inspect(manifest, store, folder, limits, cancel))


def _inspect(
    manifest: EngineManifest,
    store: ObjectStore,
    folder: Path,
    limits: Limits | None,
    cancel: Cancel | None,
) -> Iterator[Finding]:
    subject = _subject(manifest)
    engine = folder / "engine"
    try:
        store.fetch(manifest.engine, engine)
    except (NotFound, Refused) as error:
        yield _finding("bytes", subject, Outcome.FAIL, error.what)
        return
    if engine.stat().st_size != manifest.size_bytes:
        yield _finding("bytes", subject, Outcome.FAIL, f"{engine.stat().st_size} bytes")
        return
    if manifest.state is not EngineState.VERIFIED:
        yield _finding(
            "built-only", subject, Outcome.WARN, "BUILT",
            f"Verify it on a host with {manifest.spec.target.name}.",
        )  # fmt: skip
        return
    yield from _elsewhere(manifest, subject) or _try(manifest, engine, folder, limits, cancel)


def _elsewhere(manifest: EngineManifest, subject: str) -> list[Finding]:
    """Why this host is not one to try the engine on, if it is not."""
    found = backend(manifest.spec.backend).probe()
    if found.host is not None and found.can_run:
        problem = mismatch(manifest.spec.target, found.host)
        if problem:
            return [_finding("other-host", subject, Outcome.WARN, problem, "Try it there.")]
        if found.version == manifest.spec.backend_version:
            return []
        reason = f"built by {manifest.spec.backend_version}, here is {found.version}"
        return [_finding("other-version", subject, Outcome.INCONCLUSIVE, reason, ANEW)]
    if manifest.spec.target.kind != "cpu":
        return [_finding("other-host", subject, Outcome.WARN, found.reason, "Try it there.")]
    advice = f"Install {manifest.spec.backend} here, or try it on a host that has it."
    return [_finding("no-backend", subject, Outcome.INCONCLUSIVE, found.reason, advice)]


def _try(
    manifest: EngineManifest,
    engine: Path,
    folder: Path,
    limits: Limits | None,
    cancel: Cancel | None,
) -> Iterator[Finding]:
    """Load it and run its canary, in a child: what crashes there takes nothing with it."""
    subject = _subject(manifest)
    feeds, out = folder / "feeds.npz", folder / "answers.npz"
    case = canary_case(manifest.inputs, manifest.spec.profiles)
    if digest_feeds([case.feeds]) != manifest.canary_inputs:
        yield _finding("other-canary", subject, Outcome.INCONCLUSIVE, "other inputs", ANEW)
        return
    save_cases(feeds, [case.feeds])
    request = EngineRunRequest(manifest, str(engine), str(feeds), str(out), 1)
    try:
        run_child(RUN_ENGINE, request, folder, subject=subject, limits=limits, cancel=cancel)
        check_canary(manifest, load_cases(out)[0])
    except BuildCancelled:
        raise
    except (Refused, ChildCrashed) as error:
        yield _finding("canary", subject, Outcome.FAIL, error.what)
    except ModalgateError as error:
        yield _finding("not-tried", subject, Outcome.INCONCLUSIVE, error.what, error.remedy)


def _subject(manifest: EngineManifest) -> str:
    spec = manifest.spec
    return f"{spec.encoder} by {spec.backend}, {short(manifest.key)}"


def _finding(
    code: str, subject: str, outcome: Outcome, measured: str, remedy: str = ANEW
) -> Finding:
    return Finding(GATE, code, subject, outcome, measured, "as verified", remedy)
