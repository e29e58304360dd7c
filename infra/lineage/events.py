"""A release's graph as OpenLineage run events: START and COMPLETE or FAIL for each of its steps.

Nothing is made up: run ids follow from the digests of the steps, so that telling the same release
again tells the same runs, and both events of a step carry the time at which its release was
registered, since the times of single steps are not kept.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from openlineage.client.event_v2 import (
    InputDataset,
    Job,
    OutputDataset,
    Run,
    RunEvent,
    RunState,
)
from openlineage.client.generated.base import RunFacet
from openlineage.client.generated.error_message_run import ErrorMessageRunFacet
from openlineage.client.generated.job_type_job import JobTypeJobFacet
from openlineage.client.generated.parent_run import Job as ParentJob
from openlineage.client.generated.parent_run import ParentRunFacet
from openlineage.client.generated.parent_run import Run as ParentRun
from openlineage.client.serde import Serde

from infra.lineage.facets import (
    PRODUCER,
    dataset_facets,
    engine_facet,
    quality_facets,
    step_facet,
    verdict_facet,
)
from validators.contracts.digest import Digest, digest_value
from validators.contracts.verdict import GatePolicy, Verdict
from validators.lineage.graph import JobRun, LineageGraph, Node, NodeName

NAMESPACE = "modalgate"
_POLICY = GatePolicy()
_RUNS = uuid.uuid5(uuid.NAMESPACE_URL, "urn:modalgate:runs")


@dataclass(frozen=True, slots=True)
class ReleaseStory:
    """One release to tell of.

    `release` names it: the bundle, or where it was stopped the document of its verdicts. `failure`
    says what stopped it, without the subjects of findings.
    """

    release: Digest
    at_ms: int  # wall time since the epoch
    graph: LineageGraph
    failure: str = ""


def tell_release(story: ReleaseStory) -> list[RunEvent]:
    """The events of one release, in the order of its steps, within those of the release itself."""
    whole = _Whole(story)
    events = [whole.event(RunState.START)]
    for run in story.graph.runs:
        events += whole.step(run)
    return [*events, whole.event(RunState.FAIL if story.failure else RunState.COMPLETE)]


def write_lines(events: Iterable[RunEvent]) -> bytes:
    """The events as JSON lines, the same bytes for the same events."""
    return b"".join(Serde.to_json(event, ensure_ascii=False).encode() + b"\n" for event in events)


def run_id(digest: Digest) -> str:
    """The UUID (version 5) of a run, from the digest of what it is."""
    return str(uuid.uuid5(_RUNS, digest))


class _Whole:
    def __init__(self, story: ReleaseStory) -> None:
        self._story, self._service = story, story.graph.service
        self._nodes = {node.name: node for node in story.graph.nodes}
        self._time = datetime.fromtimestamp(story.at_ms / 1000, UTC).isoformat()
        identity = {"service": self._service, "release": story.release}
        self._digest = digest_value("lineage-release", identity)

    def event(self, state: RunState) -> RunEvent:
        """Of the release as a whole."""
        facets: dict[str, RunFacet] = {
            "processing_engine": engine_facet(),
            "modalgate_step": step_facet(self._digest),
        }
        if state is RunState.FAIL:
            facets["errorMessage"] = _error(self._story.failure)
        run = Run(run_id(self._digest), facets)
        return RunEvent(
            eventTime=self._time, producer=PRODUCER, run=run, job=self._job("release", "DAG"),
            eventType=state, inputs=[], outputs=[],
        )  # fmt: skip

    def step(self, run: JobRun) -> Iterator[RunEvent]:
        """START, and what became of it."""
        verdict = run.verdict
        stopped = verdict is not None and _POLICY.stops(verdict)
        for state in (RunState.START, RunState.FAIL if stopped else RunState.COMPLETE):
            told = verdict if state is not RunState.START else None
            yield RunEvent(
                eventTime=self._time,
                producer=PRODUCER,
                run=Run(run_id(run.digest), self._run_facets(run, told)),
                job=self._job(run.job, "TASK"),
                eventType=state,
                inputs=[self._input(name, told) for name in run.inputs],
                outputs=[self._output(name) for name in run.outputs],
            )

    def _job(self, name: str, kind: str) -> Job:
        facet = JobTypeJobFacet("BATCH", "MODALGATE", kind, producer=PRODUCER)
        return Job(NAMESPACE, f"{self._service}.{name.replace(' ', '.')}", {"jobType": facet})

    def _run_facets(self, run: JobRun, verdict: Verdict | None) -> dict[str, RunFacet]:
        parent = ParentRunFacet(
            ParentRun(run_id(self._digest)),
            ParentJob(NAMESPACE, f"{self._service}.release"),
            producer=PRODUCER,
        )
        facets: dict[str, RunFacet] = {
            "parent": parent,
            "processing_engine": engine_facet(),
            "modalgate_step": step_facet(run.digest),
        }
        if verdict is not None:
            facets["modalgate_verdict"] = verdict_facet(verdict)
            if _POLICY.stops(verdict):
                said = f"the {verdict.gate} gate said {verdict.outcome.value}"
                facets["errorMessage"] = _error(said)
        return facets

    def _input(self, name: NodeName, verdict: Verdict | None) -> InputDataset:
        node = self._nodes.get(name)
        facets = {} if node is None else dataset_facets(node, made=False)
        quality = {} if verdict is None else quality_facets(verdict)
        return InputDataset(NAMESPACE, name, inputFacets=quality, facets=facets)

    def _output(self, name: NodeName) -> OutputDataset:
        node: Node | None = self._nodes.get(name)
        facets = {} if node is None else dataset_facets(node, made=True)
        return OutputDataset(NAMESPACE, name, outputFacets={}, facets=facets)


def _error(message: str) -> RunFacet:
    return ErrorMessageRunFacet(message, "PYTHON", producer=PRODUCER)
