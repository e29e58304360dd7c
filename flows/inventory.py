"""The engines of the store, and what refers to each: for people, and for retention."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from flows.release.register import CHAMPION, ROLLBACK
from flows.workspace import Workspace
from infra.local_target.pinned import Pin
from services.compatibility.adapters.register import find_adapters, registered_pairs
from services.engines.manifest import open_manifest
from validators.contracts.bundle import Bundle
from validators.contracts.digest import Digest, digest_bytes, require_digest, short
from validators.contracts.documents import load
from validators.contracts.engine import EngineManifest, EngineState
from validators.contracts.errors import BadInput, NotFound, Refused
from validators.retention import Holder, Use, use_of

BUILT, VERIFIED, RELEASES = "engines/", "engines-verified/", "releases/"
_ROLES = {"stable": Use.LIVE, "canary": Use.CANARY, "previous": Use.ROLLBACK}
_ALIASES = {CHAMPION: Use.LIVE, ROLLBACK: Use.ROLLBACK}


@dataclass(frozen=True, slots=True)
class StoredEngine:
    """One engine by key. `manifest` is None where none of its documents holds: `problem` says why.

    `references` name it in the store; the last of them is its build.
    """

    key: Digest
    references: tuple[str, ...]
    manifest: EngineManifest | None
    state: EngineState
    use: Use
    used_by: tuple[str, ...]
    problem: str = ""


def engine_references(workspace: Workspace) -> dict[str, Digest]:
    """Every reference to a built or verified engine, with the engine's key."""
    return {
        name: _key_in(name)
        for prefix in (VERIFIED, BUILT)
        for name in workspace.store.references(prefix)
    }


def stored_engines(workspace: Workspace) -> tuple[StoredEngine, ...]:
    """Every engine that the store names, by encoder and backend."""
    named: dict[Digest, list[str]] = {}
    for name, key in engine_references(workspace).items():
        named.setdefault(key, []).append(name)
    known = holders(workspace)
    found = [_stored(workspace, key, tuple(names), known) for key, names in named.items()]
    return tuple(sorted(found, key=_by_encoder))


def sealed_manifest(workspace: Workspace, reference: str) -> bytes:
    """The sealed manifest that a reference names. Raises NotFound, Refused."""
    digest = workspace.store.reference(reference)
    if digest is None:
        raise NotFound("nothing is named so", where=reference)
    return workspace.store.get(digest)


def choose_engine(workspace: Workspace, prefix: str) -> StoredEngine:
    """The one engine whose key begins so.

    Raises:
        NotFound: none does.  BadInput: several do.
    """
    wanted = prefix.removeprefix("sha256:").lower()
    found = [item for item in stored_engines(workspace) if short_key(item).startswith(wanted)]
    if len(found) == 1 and wanted:
        return found[0]
    remedy = "List them: modalgate engines list"
    if not found or not wanted:
        raise NotFound(f"no engine's key begins with {prefix[:80]!r}", where="KEY", remedy=remedy)
    raise BadInput(
        f"{len(found)} engines' keys begin with {prefix[:80]!r}",
        where=", ".join(short(item.key) for item in found[:5]),
        remedy="Give more digits of the key.",
    )


def short_key(engine: StoredEngine) -> str:
    return engine.key.removeprefix("sha256:")


def holders(workspace: Workspace) -> list[Holder]:
    """What names engines: deployed revisions with their replacements, versions, release records,
    registered adapters.

    Raises:
        Refused: a document that says what is in use does not hold.  Unavailable: registry or
            store are down. Then nobody may say that an engine is not in use.
    """
    records = _recorded_bundles(workspace)
    pins = workspace.deployments.pins()
    services = {bundle.service for bundle in records.values()} | {pin.service for pin in pins}
    return [
        *(_pinned(workspace, pin, records) for pin in pins),
        *(held for name in sorted(services) for held in _registered(workspace, name, records)),
        *(
            Holder(f"release {short(digest)} of {bundle.service}", Use.RELEASED, _keys(bundle))
            for digest, bundle in records.items()
        ),
        *_adapters(workspace),
    ]


def live_bundles(workspace: Workspace) -> frozenset[Digest]:
    """The bundles that are deployed or kept to go back to, here or by an alias."""
    pinned = {pin.revision.bundle for pin in workspace.deployments.pins()}
    services = {bundle.service for bundle in _recorded_bundles(workspace).values()}
    aliased = {
        version.bundle
        for service in services
        for version in workspace.registry.versions(service)
        if version.aliases
    }
    return frozenset(pinned | aliased)


def _recorded_bundles(workspace: Workspace) -> dict[Digest, Bundle]:
    names = workspace.store.references(RELEASES)
    digests = [require_digest(f"sha256:{name.removeprefix(RELEASES)}") for name in names]
    found: dict[Digest, Bundle] = {}
    for digest in digests:
        with contextlib.suppress(NotFound):
            found[digest] = load(Bundle, workspace.store.get(digest), where=digest)
    return found


def _pinned(workspace: Workspace, pin: Pin, records: Mapping[Digest, Bundle]) -> Holder:
    bundle = records.get(pin.revision.bundle) or _laid_out(pin)
    placed = workspace.deployments.replacements(pin.service, pin.revision.name)
    replaced = set()
    for item in placed:
        with contextlib.suppress(Refused, FileNotFoundError):  # what does not hold serves nobody
            sealed = item.manifest.read_bytes()
            replaced.add(open_manifest(sealed, workspace.verifier).key)
    name = f"{pin.role} {pin.revision.name} of {pin.service}"
    return Holder(name, _ROLES[pin.role], _keys(bundle) | replaced)


def _laid_out(pin: Pin) -> Bundle:
    """The bundle as it lies on this machine, where the store does not have it any more."""
    path = Path(pin.revision.path) / "bundle.json"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Refused(
            f"the bundle of revision {pin.revision.name} can be read nowhere, so what it uses is "
            "not known",
            where=str(path),
            remedy=f"Stop that service, or restore its bundle: modalgate stop {pin.service}",
        ) from error
    if digest_bytes(data) != pin.revision.bundle:
        raise Refused("the bundle on disk is another one", where=str(path))
    return load(Bundle, data, where=str(path))


def _registered(
    workspace: Workspace, service: str, records: Mapping[Digest, Bundle]
) -> Iterator[Holder]:
    for version in workspace.registry.versions(service):
        bundle = records.get(version.bundle)
        if bundle is None:  # released into another store: its engines are there
            continue
        uses = [_ALIASES[alias] for alias in version.aliases if alias in _ALIASES]
        use = min(uses, key=list(Use).index, default=Use.REGISTERED)
        yield Holder(f"{service} {version.version}", use, _keys(bundle))


def _adapters(workspace: Workspace) -> Iterator[Holder]:
    """Vectors kept outside the platform may need an adapter long after its release."""
    for old, new in registered_pairs(workspace.store):
        found = find_adapters(workspace.store, workspace.verifier, old, new)
        name = f"adapter from encoder {short(new)} to {short(old)}"
        yield Holder(name, Use.REGISTERED, frozenset(item.engine_key for item in found))


def _keys(bundle: Bundle) -> frozenset[Digest]:
    return frozenset(engine.key for engine in bundle.engines)


def _stored(
    workspace: Workspace, key: Digest, names: tuple[str, ...], known: list[Holder]
) -> StoredEngine:
    manifest, state, problem = None, EngineState.BUILT, ""
    for name in names:  # verified ones come first, and the build itself last
        try:
            found = open_manifest(sealed_manifest(workspace, name), workspace.verifier)
        except (NotFound, Refused) as error:
            problem = problem or error.what
            continue
        if found.state is EngineState.VERIFIED:
            state = EngineState.VERIFIED
        manifest = manifest or found
    use, used_by = use_of(key, known)
    return StoredEngine(key, names, manifest, state, use, used_by, problem)


def _by_encoder(engine: StoredEngine) -> tuple[str, str, str]:
    if engine.manifest is None:
        return ("", "", engine.key)
    spec = engine.manifest.spec
    return (spec.encoder, spec.backend, engine.key)


def _key_in(reference: str) -> Digest:
    return require_digest(f"sha256:{reference.split('/')[1]}")
