"""A release told to whoever keeps lineage: a file of the evidence, and a server where one is set.

Telling never fails and never stalls a release: what goes wrong is a warning in the log.
"""

from __future__ import annotations

import logging
import os

from flows.interruption import Interrupted
from flows.lineage.derive import ServiceLineage, lineage_of_service, version_digest
from flows.release.run import Release
from flows.workspace import Workspace
from infra.files import write_atomically
from infra.lineage.events import ReleaseStory, tell_release, write_lines
from infra.lineage.send import Sent, destination_of, send_events
from validators.contracts.digest import digest_bytes
from validators.contracts.errors import ModalgateError
from validators.contracts.ports import ModelVersion
from validators.contracts.verdict import GatePolicy
from validators.lineage.graph import (
    JobRun,
    LineageGraph,
    Node,
    NodeKind,
    downstream,
    join,
    node_name,
    part,
    upstream,
)

EVIDENCE = "openlineage.jsonl"

_log = logging.getLogger(__name__)


def tell_version(workspace: Workspace, version: ModelVersion) -> None:
    """Tell of a registered version, and of what serves it by now."""
    try:
        lineage = lineage_of_service(workspace, version.model, only=version.bundle)
        _tell(workspace, story_of(lineage, version))
    except Exception as error:  # beside the release, and no reason for it to fail
        _log.warning("the lineage of %s was not told: %s", version.model, _said(error))


def tell_stopped(release: Release, raised: ModalgateError) -> None:
    """Tell of a release that a gate stopped: the gates so far, the last of which failed."""
    if not release.verdicts or isinstance(raised, Interrupted):
        return  # it never came to a gate, or somebody waits for its end
    try:
        _tell(release.workspace, stopped_story(release, type(raised).__name__))
    except Exception as error:  # the release has its own error to report
        _log.warning("the stopped release was not told: %s", _said(error))


def story_of(lineage: ServiceLineage, version: ModelVersion) -> ReleaseStory:
    """One version with everything that it came from, its gates, and its deployment."""
    name = node_name(NodeKind.VERSION, version_digest(version))
    known = upstream(lineage.graph, [name]) | downstream(lineage.graph, [name])
    found = part(lineage.graph, known)
    documents = lineage.release_of(version.bundle)
    if documents is not None:  # gates of other releases judged some of the same things
        own = set(documents.verdicts)
        runs = [run for run in found.runs if run.verdict is None or run.verdict in own]
        found = join(found.service, found.nodes, runs)
    return ReleaseStory(version.bundle, version.created_ms, found)


def stopped_story(release: Release, failure: str) -> ReleaseStory:
    """What is known of a release that has no record: its data as far as it came, and its gates."""
    service, policy, known = release.pipeline.service, GatePolicy(), release.data
    place = f"{release.pipeline.data.kind} {release.pipeline.data.location}"
    labels = {NodeKind.SOURCE: place, NodeKind.INGESTED: "", NodeKind.DATASET: "de-identified"}
    nodes = {
        kind: Node(kind, known[kind.value], label)
        for kind, label in labels.items()
        if kind.value in known
    }
    steps = (("ingest", NodeKind.SOURCE, NodeKind.INGESTED),
             ("deidentify", NodeKind.INGESTED, NodeKind.DATASET))  # fmt: skip
    runs = [
        JobRun(service, job, (nodes[one].name,), (nodes[other].name,))
        for job, one, other in steps
        if one in nodes and other in nodes
    ]
    for verdict in release.verdicts.values():
        kind = NodeKind.INGESTED if verdict.gate == "ingest" else NodeKind.DATASET
        judged = (nodes[kind].name,) if kind in nodes and verdict.gate != "contracts" else ()
        runs.append(JobRun(service, f"gate {verdict.gate}", judged, (), verdict))
    stopped = [verdict.gate for verdict in release.verdicts.values() if policy.stops(verdict)]
    why = f"the {stopped[-1]} gate stopped it" if stopped else f"it ended with {failure}"
    return ReleaseStory(
        release=digest_bytes(release.verdict_document()),
        at_ms=release.workspace.clock.wall_ns() // 1_000_000,
        graph=LineageGraph(service, tuple(nodes.values()), tuple(runs)),
        failure=why,
    )


def send_story(story: ReleaseStory) -> Sent | None:
    """Send to the server that the environment names; None where it names none."""
    destination = destination_of(os.environ)
    if destination is None:
        return None
    sent = send_events(tell_release(story), destination)
    if sent.problem:
        _log.warning(
            "the OpenLineage server at %s took %d events: %s", destination.host, sent.events,
            sent.problem,
        )  # fmt: skip
    return sent


def stories_of(lineage: ServiceLineage) -> list[ReleaseStory]:
    """Every registered version of a service, oldest first."""
    ordered = sorted(lineage.versions, key=lambda item: (item.created_ms, item.version))
    return [story_of(lineage, version) for version in ordered]


def _tell(workspace: Workspace, story: ReleaseStory) -> None:
    folder = workspace.home.folder("evidence", story.graph.service)
    write_atomically(folder / EVIDENCE, write_lines(tell_release(story)))
    send_story(story)


def _said(error: Exception) -> str:
    return error.what if isinstance(error, ModalgateError) else type(error).__name__
