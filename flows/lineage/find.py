"""What somebody asks about: a service, a digest in any service's lineage, or a sample's id."""

from __future__ import annotations

import re
from dataclasses import dataclass

from flows.lineage.derive import ServiceLineage, lineage_of_service, services_of
from flows.lineage.of_release import Documents
from flows.release.register import CHAMPION
from flows.workspace import Workspace
from validators.contracts.dataset import Dataset
from validators.contracts.digest import Digest
from validators.contracts.documents import load
from validators.contracts.errors import BadInput, NotFound, Refused
from validators.lineage.graph import (
    LineageGraph,
    Node,
    NodeKind,
    NodeName,
    downstream,
    part,
    upstream,
)
from validators.lineage.record import SampleLineage, sample_lineage

_DIGEST = re.compile(r"(?:[a-z]+/)?(?:sha256:)?([0-9a-f]{6,64})")


@dataclass(frozen=True, slots=True)
class Asked:
    """What was found. `start` are the things that were asked about, `whole` the service's lineage.

    `graph` is what `start` came from; `used_by` what came from it.
    """

    whole: ServiceLineage
    start: tuple[Node, ...]
    graph: LineageGraph
    used_by: tuple[Node, ...]
    sample: SampleLineage | None = None


def ask(
    workspace: Workspace, word: str, service: str | None, *, sample_only: bool = False
) -> Asked:
    """Find what a word names: of `service` only, or where that is None first a service itself.

    `sample_only` where it is the id of a sample, whatever else is called so.

    Raises:
        NotFound: nothing is called so.  BadInput: several things are.
        Refused: a document that the answer needs does not hold.
    """
    services = [service] if service is not None else list(services_of(workspace))
    if service is None and word in services and not sample_only:
        return ask_service(lineage_of_service(workspace, word))
    wholes = [lineage_of_service(workspace, name) for name in services]
    found = [
        (whole, node)
        for whole in wholes
        if not sample_only
        for node in _matching(whole.graph, word)
    ]
    if len({node.digest for _, node in found}) > 1:
        named = ", ".join(sorted({node.name for _, node in found})[:5])
        raise BadInput(
            f"{word[:80]!r} begins several digests", where=named, remedy="Give more digits."
        )
    if found:
        whole = found[0][0]
        return _asked(whole, tuple(node for owner, node in found if owner is whole))
    for whole in wholes:
        sample = _sample(workspace, whole, word)
        if sample is not None:
            return sample
    raise NotFound(
        f"no service, digest or sample is called {word[:80]!r}",
        where=", ".join(services) or "no service",
        remedy="Name a released service, six or more digits of a digest, or a sample's id.",
    )


def ask_service(whole: ServiceLineage) -> Asked:
    """What serves of a service, or else its newest version, or else its bundles."""
    for kind in (NodeKind.DEPLOYMENT, NodeKind.VERSION, NodeKind.BUNDLE):
        start = [node for node in whole.graph.nodes if node.kind is kind]
        if kind is NodeKind.VERSION and start:
            start = [max(start, key=_number)]
        if start:
            return _asked(whole, tuple(start))
    return _asked(whole, ())


def by_use(whole: ServiceLineage) -> list[Documents]:
    """The champion's release, then the newest first, then those that no version points to."""
    ordered = sorted(
        whole.versions, key=lambda item: (CHAMPION in item.aliases, int(item.version)), reverse=True
    )
    found = [whole.release_of(version.bundle) for version in ordered]
    known = [item for item in found if item is not None]
    return known + [item for item in whole.releases if item not in known]


def _sample(workspace: Workspace, whole: ServiceLineage, word: str) -> Asked | None:
    """The sample in the newest data set that has it, the champion's first."""
    seen = set[Digest]()
    for documents in by_use(whole):
        place = documents.record.dataset
        if place in seen:
            continue
        seen.add(place)
        dataset = load(Dataset, workspace.store.get(place), where=place)
        try:
            sample = sample_lineage(documents.lineage, dataset, word)
        except NotFound:
            continue
        return _with_sample(whole, documents, sample)
    return None


def _with_sample(whole: ServiceLineage, documents: Documents, sample: SampleLineage) -> Asked:
    node = next(
        (item for item in whole.graph.nodes
         if item.kind is NodeKind.DATASET and item.digest == sample.dataset),
        None,
    )  # fmt: skip
    if node is None:
        raise Refused(
            "the bundle is of another data set than its record", where=documents.record.bundle,
            remedy="Restore the record from a copy of the store, or release again.",
        )  # fmt: skip
    asked = _asked(whole, (node,))
    return Asked(asked.whole, asked.start, asked.graph, asked.used_by, sample)


def _asked(whole: ServiceLineage, start: tuple[Node, ...]) -> Asked:
    names = [node.name for node in start]
    came_from = upstream(whole.graph, names)
    later = downstream(whole.graph, names) - set(names)
    return Asked(
        whole, start, part(whole.graph, came_from),
        tuple(node for node in whole.graph.nodes if node.name in later),
    )  # fmt: skip


def _matching(graph: LineageGraph, word: str) -> list[Node]:
    """Things whose name is the word, or whose digest (or engine key) begins with it."""
    by_name = [node for node in graph.nodes if node.name == NodeName(word)]
    match = _DIGEST.fullmatch(word)
    if by_name or match is None:
        return by_name
    wanted = f"sha256:{match[1]}"
    return [
        node
        for node in graph.nodes
        if node.digest.startswith(wanted) or dict(node.facets).get("key", "").startswith(wanted)
    ]


def _number(node: Node) -> int:
    return int(node.label)
