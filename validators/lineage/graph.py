"""What came from what, as values: things named by digests, and the runs that made them of others.

A thing is named `<kind>/<digest>`: the same bytes may be a source and an exported model. Nothing
here is a second truth: the graph is read from the records of releases whenever somebody asks.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NewType

from validators.contracts.digest import Digest, digest_value, short
from validators.contracts.verdict import Verdict

NodeName = NewType("NodeName", str)

Facets = tuple[tuple[str, str], ...]


class NodeKind(enum.Enum):
    """What a thing is. In the order in which people read a release."""

    SOURCE = "source"
    INGESTED = "ingested"
    DATASET = "dataset"
    CERTIFICATE = "certificate"
    CHECKPOINT = "checkpoint"
    ONNX = "onnx"
    ENGINE = "engine"
    WINDOW = "window"
    ASSET = "asset"
    BUNDLE = "bundle"
    VERSION = "version"
    DEPLOYMENT = "deployment"


ROOTS = frozenset({NodeKind.SOURCE, NodeKind.CHECKPOINT})
"""Kinds that come from outside: nothing here makes them."""

_ONCE = frozenset({NodeKind.BUNDLE, NodeKind.VERSION, NodeKind.DEPLOYMENT})
"""Kinds whose content says what they came from: two origins contradict each other."""


@dataclass(frozen=True, slots=True)
class Node:
    """One thing. `label` is for people, `facets` are facts by name, sorted."""

    kind: NodeKind
    digest: Digest
    label: str
    facets: Facets = ()

    @property
    def name(self) -> NodeName:
        return node_name(self.kind, self.digest)


@dataclass(frozen=True, slots=True)
class JobRun:
    """One step that took things and made things. A gate makes none and has a verdict.

    The same step over the same things is the same run, whenever it happened.
    """

    service: str
    job: str  # "ingest", "export image", "gate quality"
    inputs: tuple[NodeName, ...]
    outputs: tuple[NodeName, ...] = ()
    verdict: Verdict | None = None

    @property
    def digest(self) -> Digest:
        return digest_value("lineage-run", self)


@dataclass(frozen=True, slots=True)
class LineageGraph:
    """Things and the runs between them, each once, in a stable order."""

    service: str
    nodes: tuple[Node, ...]
    runs: tuple[JobRun, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a lineage. `severe`: what is shown cannot be relied on."""

    code: str
    where: str
    what: str
    remedy: str
    severe: bool


def node_name(kind: NodeKind, digest: Digest) -> NodeName:
    return NodeName(f"{kind.value}/{digest}")


def join(service: str, nodes: Iterable[Node], runs: Iterable[JobRun]) -> LineageGraph:
    """A graph of these; of things told twice the one with more facets stays."""
    found: dict[NodeName, Node] = {}
    for node in nodes:
        before = found.get(node.name)
        if before is None or len(before.facets) < len(node.facets):
            found[node.name] = node
    order = list(NodeKind)
    by_kind = sorted(found.values(), key=lambda n: (order.index(n.kind), n.label, n.digest))
    distinct = {run.digest: run for run in runs}
    return LineageGraph(service, tuple(by_kind), tuple(distinct.values()))


def makers(graph: LineageGraph, name: NodeName) -> list[JobRun]:
    """The runs that made a thing: one, where all is well."""
    return [run for run in graph.runs if name in run.outputs]


def upstream(graph: LineageGraph, start: Iterable[NodeName]) -> frozenset[NodeName]:
    """These things and all that they came from. Ends on cycles too."""
    made: dict[NodeName, set[NodeName]] = {}
    for run in graph.runs:
        for output in run.outputs:
            made.setdefault(output, set()).update(run.inputs)
    return _reach(made, start)


def downstream(graph: LineageGraph, start: Iterable[NodeName]) -> frozenset[NodeName]:
    """These things and all that came from them."""
    used: dict[NodeName, set[NodeName]] = {}
    for run in graph.runs:
        for item in run.inputs:
            used.setdefault(item, set()).update(run.outputs)
    return _reach(used, start)


def part(graph: LineageGraph, names: frozenset[NodeName]) -> LineageGraph:
    """The things of these names, and the runs that stay among them."""
    runs = [
        run
        for run in graph.runs
        if names.issuperset(run.inputs) and (names.intersection(run.outputs) or not run.outputs)
    ]
    return join(graph.service, [node for node in graph.nodes if node.name in names], runs)


def find_faults(graph: LineageGraph) -> tuple[Fault, ...]:
    """What cannot be: things without an origin, with contradicting ones, or made of themselves."""
    return (*_missing(graph), *_contradicting(graph), *_cycles(graph))


def _reach(edges: dict[NodeName, set[NodeName]], start: Iterable[NodeName]) -> frozenset[NodeName]:
    seen, waiting = set[NodeName](), list(start)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += edges.get(name, ())
    return frozenset(seen)


def _missing(graph: LineageGraph) -> Iterator[Fault]:
    known = {node.name for node in graph.nodes}
    made = {name for run in graph.runs for name in run.outputs}
    for node in graph.nodes:
        if node.kind not in ROOTS and node.name not in made:
            yield Fault(
                "missing-parent", node.name, f"nothing says what {describe(node)} was made of",
                "An earlier version did not write it down: release again to have it recorded.",
                severe=False,
            )  # fmt: skip
    for run in graph.runs:
        for name in sorted({*run.inputs, *run.outputs} - known):
            yield Fault(
                "missing-node", name, f"the step {run.job} names a thing that no record describes",
                "Restore the record from a copy of the store, or release again.", severe=True,
            )  # fmt: skip


def _contradicting(graph: LineageGraph) -> Iterator[Fault]:
    for node in graph.nodes:
        found = makers(graph, node.name)
        if len(found) < 2:
            continue
        severe = node.kind in _ONCE
        yield Fault(
            "two-parents", node.name,
            f"{describe(node)} was made by {len(found)} runs: "
            + ", ".join(f"{run.job} ({short(run.digest)})" for run in found[:5]),
            "One of the records was changed: compare both with a copy of the store."
            if severe
            else "Nothing to do: the same bytes came out of different inputs, so either explains "
            "them; the release that is asked about tells which it used.",
            severe,
        )  # fmt: skip


def _cycles(graph: LineageGraph) -> Iterator[Fault]:
    """One fault for each thing from which a walk along its origins comes back to itself."""
    made: dict[NodeName, set[NodeName]] = {}
    for run in graph.runs:
        for output in run.outputs:
            made.setdefault(output, set()).update(run.inputs)
    circular = sorted(name for name in made if name in _reach(made, made[name]))
    if circular:
        yield Fault(
            "cycle", circular[0],
            f"{len(circular)} things were made of themselves: " + ", ".join(circular[:5]),
            "A record was changed: restore it from a copy of the store, or release again.",
            severe=True,
        )  # fmt: skip


def describe(node: Node) -> str:
    """For messages: "the engine image by openvino (4f2a...)"."""
    return f"the {node.kind.value} {node.label} ({short(node.digest)})"
