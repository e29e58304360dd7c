"""Requests that were fulfilled once, and whose engine a gateway would not find again."""

from __future__ import annotations

from functools import partial

from flows.release.bundle import find
from flows.workspace import Workspace
from services.engines.manifest import open_manifest
from services.engines.profiles.extension import covers_sizes
from validators.contracts.builds import BuildState, ShapeRequest
from validators.contracts.digest import Digest, digest_chunks, short
from validators.contracts.engine import EngineManifest, EngineState
from validators.contracts.errors import NotFound, Refused

_CHUNK_BYTES = 1 << 20
_Place = tuple[str, Digest, str]
"""Service, bundle and encoder: where one engine may lie beside the bundle's."""


def reopen_lost(workspace: Workspace) -> int:
    """Let wait again what is DONE, of a deployed revision, and not what is in place.

    A gateway passes over an engine that is missing or damaged and serves the bundle's own, and
    what it then asks for is known already.

    Returns: how many requests wait again.

    Raises:
        Refused: a document of what is deployed does not hold.  Unavailable: the disk is full.
    """
    queue = workspace.builds
    done = [build.request for build in queue.builds() if build.state is BuildState.DONE]
    if not done:
        return 0
    deployed = {(pin.service, pin.revision.bundle) for pin in workspace.deployments.pins()}
    kept = [request for request in done if (request.service, request.bundle) in deployed]
    found = {place: _intact(workspace, place) for place in map(_place_of, kept)}
    lost = [item for item in kept if not _covers(workspace, found[_place_of(item)], item)]
    return sum(queue.reopen(request) for request in lost)


def _place_of(request: ShapeRequest) -> _Place:
    return request.service, request.bundle, request.encoder


def _intact(workspace: Workspace, place: _Place) -> EngineManifest | None:
    """What lies there, if its signature and its bytes hold."""
    service, bundle, encoder = place
    placed = workspace.deployments.replaced_engine(service, short(bundle), encoder)
    if placed is None:
        return None
    try:
        manifest = open_manifest(placed.manifest.read_bytes(), workspace.verifier)
        with placed.engine.open("rb") as stream:
            digest = digest_chunks(iter(partial(stream.read, _CHUNK_BYTES), b""))
    except (Refused, OSError):
        return None
    holds = manifest.state is EngineState.VERIFIED and digest == manifest.engine
    return manifest if holds else None


def _covers(workspace: Workspace, manifest: EngineManifest | None, request: ShapeRequest) -> bool:
    """Of a bundle that is gone nothing is asked for: its requests stay as they are."""
    try:
        inputs = find(workspace, request.bundle).encoder(request.encoder).contract.inputs
    except (NotFound, Refused):
        return True
    return manifest is not None and covers_sizes(
        inputs, manifest.spec.profiles, dict(request.sizes)
    )
