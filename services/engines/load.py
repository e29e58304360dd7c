"""Loads an engine, and refuses everything that is not exactly what was verified here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from services.engines.backends.catalogue import backend
from services.engines.backends.protocol import Session
from services.engines.canary import check_canary
from services.engines.cases import canary_case
from services.engines.guard import check_feeds
from services.engines.host import mismatch
from services.engines.manifest import open_manifest
from services.engines.tensors import digest_feeds, numpy_type
from validators.contracts.digest import Digest, digest_bytes
from validators.contracts.engine import EngineManifest, EngineState, HostIdentity
from validators.contracts.errors import NotFound, Refused, Unavailable
from validators.contracts.ports import RunningEngine, Tensors, Verifier


class LoadedEngine:
    """A session behind the profile guard. Implements the `RunningEngine` port."""

    def __init__(self, manifest: EngineManifest, session: Session) -> None:
        self._manifest = manifest
        self._session: Session | None = session

    @property
    def manifest(self) -> EngineManifest:
        return self._manifest

    def run(self, feeds: Tensors) -> dict[str, npt.NDArray[Any]]:
        session = self._session
        if session is None:
            raise Unavailable("the engine has been closed", where=self._manifest.spec.encoder)
        check_feeds(feeds, self._manifest.inputs, self._manifest.spec.profiles)
        ordered = {spec.name: np.ascontiguousarray(feeds[spec.name])
                   for spec in self._manifest.inputs}  # fmt: skip
        answer = session.infer(ordered)
        return {spec.name: answer[spec.name] for spec in self._manifest.outputs}

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()


def load_engine(
    sealed: bytes,
    engine_path: Path,
    *,
    verifier: Verifier,
    threads: int = 1,
    host: HostIdentity | None = None,
    engine_key: Digest | None = None,
) -> RunningEngine:
    """The engine, loaded, tried with its canary, guarded, ready.

    `host` is this machine as the backend sees it, unless given; `engine_key` is the key that the
    caller expects (a bundle names it), where it knows.

    Raises:
        Refused: a manifest that is unsigned, tampered with, of another engine or not VERIFIED; an
            engine file that is not the manifest's; another host, another backend version; a canary
            that answers something else.
        Unavailable: the backend or its hardware is not here.
    """
    manifest = open_manifest(sealed, verifier)
    if engine_key is not None and manifest.key != engine_key:
        raise Refused(
            "this is the manifest of another engine",
            where=f"{manifest.spec.encoder} on {manifest.spec.backend}",
            remedy="Load the engine with the manifest that its bundle names.",
        )
    return load_opened(manifest, engine_path, threads=threads, host=host)


def load_opened(
    manifest: EngineManifest,
    engine_path: Path,
    *,
    threads: int = 1,
    host: HostIdentity | None = None,
) -> RunningEngine:
    """As `load_engine`, where `open_manifest` has checked the manifest's signature already."""
    where = f"{manifest.spec.encoder} on {manifest.spec.backend}"
    _require_verified(manifest, where)
    data = _read_engine(manifest, engine_path, where)
    _require_host(manifest, host, where)
    engine = open_engine(manifest, data, threads=threads)
    try:
        _run_canary(manifest, engine)
    except BaseException:
        engine.close()
        raise
    return engine


def open_engine(manifest: EngineManifest, data: bytes, *, threads: int) -> LoadedEngine:
    """The guarded engine without any check: for what has been checked, or is about to be."""
    chosen = backend(manifest.spec.backend)
    return LoadedEngine(manifest, chosen.open(manifest.spec, data, threads))


def _require_verified(manifest: EngineManifest, where: str) -> None:
    if manifest.state is not EngineState.VERIFIED:
        raise Refused(
            "the engine is BUILT, not VERIFIED: nobody compared its answers with the model's",
            where=where,
            remedy=f"Verify it on a host with {manifest.spec.target.name}, then load it there.",
        )


def _read_engine(manifest: EngineManifest, path: Path, where: str) -> bytes:
    """The engine's bytes, read once, so that what was checked is what is loaded."""
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size == manifest.size_bytes else b""
    except OSError as error:
        raise NotFound(
            "the engine file cannot be read", where=where, remedy="Fetch the engine again."
        ) from error
    if size != manifest.size_bytes:
        raise Refused(
            f"the engine file has {size} bytes, its manifest says {manifest.size_bytes}: "
            "it is cut short, or another engine",
            where=where,
            remedy="Fetch the engine again, with its own manifest.",
        )
    if digest_bytes(data) != manifest.engine:
        raise Refused(
            "the engine file is not the one its manifest was made for: it was changed, or is "
            "another engine",
            where=where,
            remedy="Fetch the engine again, with its own manifest.",
        )
    return data


def _require_host(manifest: EngineManifest, host: HostIdentity | None, where: str) -> None:
    found = backend(manifest.spec.backend).probe()
    if not found.can_run:
        raise Unavailable(
            f"{manifest.spec.backend} cannot run here: {found.reason}", where=where,
            remedy="Load the engine on a host that has it.",
        )  # fmt: skip
    if found.version != manifest.spec.backend_version:
        raise Refused(
            f"the engine was built by {manifest.spec.backend} {manifest.spec.backend_version}, "
            f"here is {found.version}",
            where=where,
            remedy="Build it again with this version.",
        )
    here = host or found.host
    if here is None:
        raise Unavailable("this host has no identity for the backend", where=where)
    for made_for in filter(None, (manifest.spec.target, manifest.verified_on)):
        problem = mismatch(made_for, here)
        if problem:
            raise Refused(
                f"the engine was made for another host: {problem}", where=where,
                remedy="Build and verify it on a host like this one.",
            )  # fmt: skip


def _run_canary(manifest: EngineManifest, engine: LoadedEngine) -> None:
    case = canary_case(manifest.inputs, manifest.spec.profiles)
    if digest_feeds([case.feeds]) != manifest.canary_inputs:
        raise Refused(
            "the canary's inputs are not those the engine was verified with",
            where=manifest.spec.encoder,
            remedy="Verify the engine again with this version of the platform.",
        )
    answer = engine.run(case.feeds)
    for spec in manifest.outputs:
        if answer[spec.name].dtype != numpy_type(spec):
            raise Refused(
                f"output {spec.name} comes out as {answer[spec.name].dtype}",
                where=spec.describe(), remedy="Build the engine again.",
            )  # fmt: skip
    check_canary(manifest, answer)
