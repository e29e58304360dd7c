"""The lineage of a service, read from its release records, the registry and what is deployed.

A record that does not hold is a fault beside the rest, never the end of the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from flows.lineage.of_release import Documents, ReleaseGraph
from flows.release.bundle import find
from flows.release.register import record_of
from flows.workspace import Workspace
from infra.local_target.pinned import Pin
from services.engines.manifest import open_manifest
from validators.contracts.bundle import Bundle
from validators.contracts.digest import Digest, digest_value, require_digest, short
from validators.contracts.documents import load
from validators.contracts.engine import EngineManifest
from validators.contracts.errors import BadInput, NotFound, Refused
from validators.contracts.ports import ModelVersion
from validators.contracts.verdict import Verdict
from validators.lineage.graph import (
    Fault,
    JobRun,
    LineageGraph,
    Node,
    NodeKind,
    find_faults,
    join,
    node_name,
)
from validators.lineage.record import LineageRecord, read_record
from validators.lineage.summary import SUMMARY_FORMAT, LineageSummary

RELEASES = "releases/"


@dataclass(frozen=True, slots=True)
class ServiceLineage:
    """A service's graph with what is wrong in it. `releases` are those whose record holds."""

    graph: LineageGraph
    releases: tuple[Documents, ...]
    versions: tuple[ModelVersion, ...]
    faults: tuple[Fault, ...]

    def release_of(self, bundle: Digest) -> Documents | None:
        return next((item for item in self.releases if item.record.bundle == bundle), None)


def lineage_of_service(
    workspace: Workspace, service: str, *, only: Digest | None = None
) -> ServiceLineage:
    """What came from what in one service; with `only` the release of one bundle.

    Raises:
        NotFound: nothing of that name was released.
        Unavailable: the store or the registry is down.
    """
    faults: list[Fault] = []
    wanted = _recorded(workspace) if only is None else [only]
    releases = tuple(_releases(workspace, service, wanted, faults))
    versions = tuple(workspace.registry.versions(service))
    if not releases and not versions:
        known = ", ".join(services_of(workspace)) or "none"
        raise NotFound(
            f"nothing of {service[:80]!r} is recorded",
            where="SERVICE",
            remedy=f"Name a released service ({known}), or release it: modalgate release FILE",
        )
    parts = [ReleaseGraph(item) for item in releases]
    nodes = [node for part in parts for node in part.nodes()]
    runs = [run for part in parts for run in part.runs()]
    for version in versions:
        nodes.append(_version_node(version))
        runs.append(_registered(service, version))
    for pin in _pins(workspace, service, faults):
        placed = _placed(workspace, pin, faults)
        nodes += [_deployment_node(pin), *(_placed_node(item) for item in placed)]
        runs += [_deployed(pin, versions, placed), *(_built(service, item) for item in placed)]
    graph = join(service, nodes, runs)
    return ServiceLineage(graph, releases, versions, (*faults, *find_faults(graph)))


def services_of(workspace: Workspace) -> tuple[str, ...]:
    """Every service that the store has a readable release of."""
    found = set()
    for digest in _recorded(workspace):
        try:
            found.add(find(workspace, digest).service)
        except (NotFound, Refused):  # told where its service is asked about
            continue
    return tuple(sorted(found))


def _recorded(workspace: Workspace) -> list[Digest]:
    """The bundles of all release records, in the order of their digests."""
    names = sorted(workspace.store.references(RELEASES))
    found = []
    for name in names:
        try:
            found.append(require_digest(f"sha256:{name.removeprefix(RELEASES)}"))
        except BadInput:  # no release of ours has such a name
            continue
    return found


def _releases(
    workspace: Workspace, service: str, wanted: list[Digest], faults: list[Fault]
) -> Iterator[Documents]:
    for digest in wanted:
        try:
            bundle = find(workspace, digest)
            if bundle.service != service:
                continue
            yield _read(workspace, digest, bundle, faults)
        except (NotFound, Refused) as error:
            faults.append(_damaged(f"{RELEASES}{short(digest)}", error))


def _read(workspace: Workspace, digest: Digest, bundle: Bundle, faults: list[Fault]) -> Documents:
    store, record = workspace.store, record_of(workspace, digest)
    if record.bundle != digest:
        raise Refused(
            "the record of a release is of another bundle", where=f"{RELEASES}{short(digest)}"
        )
    try:
        lineage = read_record(store.get(record.lineage), where=record.lineage)
    except (NotFound, Refused) as error:
        faults.append(_damaged(f"lineage of {short(digest)}", error))
        lineage = LineageRecord(2, LineageSummary(SUMMARY_FORMAT, 0, False, ()))
    try:
        verdicts = load(tuple[Verdict, ...], store.get(record.verdicts), where=record.verdicts)
    except (NotFound, Refused) as error:
        faults.append(_damaged(f"verdicts of {short(digest)}", error))
        verdicts = ()
    return Documents(record, bundle, lineage, verdicts, _manifests(workspace, bundle, faults))


def _manifests(
    workspace: Workspace, bundle: Bundle, faults: list[Fault]
) -> dict[Digest, EngineManifest]:
    found = {}
    for engine in bundle.engines:
        try:
            sealed = workspace.store.get(engine.manifest)
            found[engine.manifest] = open_manifest(sealed, workspace.verifier)
        except (NotFound, Refused) as error:
            faults.append(_damaged(f"manifest of {engine.encoder} by {engine.backend}", error))
    return found


def _pins(workspace: Workspace, service: str, faults: list[Fault]) -> list[Pin]:
    try:
        return [pin for pin in workspace.deployments.pins() if pin.service == service]
    except Refused as error:
        faults.append(_damaged("deployments", error))
        return []


def _damaged(where: str, error: NotFound | Refused) -> Fault:
    remedy = error.remedy or "Restore it from a copy of the store, or release again."
    return Fault("damaged-record", error.where or where, f"{where}: {error.what}", remedy, True)


def _version_node(version: ModelVersion) -> Node:
    facets = (("aliases", ", ".join(version.aliases)), ("registered_ms", str(version.created_ms)))
    return Node(NodeKind.VERSION, version_digest(version), version.version, facets)


def version_digest(version: ModelVersion) -> Digest:
    """A registered version by its content: the model, its number, its bundle."""
    return digest_value(
        "model-version",
        {"model": version.model, "version": version.version, "bundle": version.bundle},
    )


def _registered(service: str, version: ModelVersion) -> JobRun:
    bundle = node_name(NodeKind.BUNDLE, version.bundle)
    made = node_name(NodeKind.VERSION, version_digest(version))
    return JobRun(service, "register", (bundle,), (made,))


def _deployment_node(pin: Pin) -> Node:
    facets = (("role", pin.role), ("target", "local"))
    return Node(NodeKind.DEPLOYMENT, _deployment_digest(pin), pin.revision.name, facets)


def _deployment_digest(pin: Pin) -> Digest:
    return digest_value(
        "deployment",
        {"service": pin.service, "target": "local", "bundle": pin.revision.bundle},
    )


def _placed(workspace: Workspace, pin: Pin, faults: list[Fault]) -> list[EngineManifest]:
    """The engines that were built later and lie beside the bundle of a deployed revision."""
    found = []
    for item in workspace.deployments.replacements(pin.service, pin.revision.name):
        try:
            found.append(open_manifest(item.manifest.read_bytes(), workspace.verifier))
        except FileNotFoundError:  # taken away meanwhile
            continue
        except Refused as error:
            faults.append(_damaged(f"engine beside {pin.revision.name}", error))
    return found


def _placed_node(manifest: EngineManifest) -> Node:
    spec = manifest.spec
    facets = (("key", manifest.key), ("placed", "beside its bundle"))
    label = f"{spec.encoder} by {spec.backend} for {spec.target.name}"
    return Node(NodeKind.ENGINE, manifest.engine, label, facets)


def _built(service: str, manifest: EngineManifest) -> JobRun:
    compiled = node_name(NodeKind.ONNX, manifest.spec.onnx)
    made = node_name(NodeKind.ENGINE, manifest.engine)
    return JobRun(service, f"build {_placed_node(manifest).label}", (compiled,), (made,))


def _deployed(pin: Pin, versions: tuple[ModelVersion, ...], placed: list[EngineManifest]) -> JobRun:
    version = next((item for item in versions if item.bundle == pin.revision.bundle), None)
    came_from = (
        node_name(NodeKind.BUNDLE, pin.revision.bundle)
        if version is None
        else node_name(NodeKind.VERSION, version_digest(version))
    )
    made = node_name(NodeKind.DEPLOYMENT, _deployment_digest(pin))
    engines = [node_name(NodeKind.ENGINE, item.engine) for item in placed]
    return JobRun(pin.service, "deploy", (came_from, *dict.fromkeys(engines)), (made,))
