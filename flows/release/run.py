"""One run of a release: what is being released, with what, and what it has found so far."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run

from flows.documents import engine_rows, verdict_rows
from flows.journal import Journal
from flows.progress import reporter
from flows.release.values import EngineBuild, ReleaseOptions
from flows.workspace import Workspace
from validators.contracts.digest import Digest, canonical_json, digest_value, hex_of
from validators.contracts.errors import Unavailable
from validators.contracts.pipeline import Pipeline
from validators.contracts.ports import ModelVersion, ObjectStore
from validators.contracts.verdict import (
    Evidence,
    GatePolicy,
    Verdict,
    apply_waivers,
    require_pass,
)


def _can_help(_task: Any, _run: Any, state: Any) -> bool:
    """Retry only what another try can mend: a dependency that was away."""
    result = state.result(raise_on_failure=False)
    return isinstance(result, Unavailable)


STEP: Mapping[str, Any] = {
    "retries": 2,
    "retry_delay_seconds": 3,
    "retry_condition_fn": _can_help,
    "cache_policy": NO_CACHE,  # the journal recalls; see docs/decisions/0003
    "persist_result": False,
}
"""Prefect's settings of every task of a release."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What this release is compared with: the champion, or nothing at the first release.

    `champion_exists` is about the registry as it is now; `version` may be older where the champion
    is this very release (a second run compares with what the first run compared with).
    """

    version: ModelVersion | None
    champion_exists: bool


@dataclass
class Release:
    """Shared by the tasks of one run. Verdicts are kept in the order of the gates."""

    workspace: Workspace
    pipeline: Pipeline
    base: Path  # the pipeline file's folder
    options: ReleaseOptions
    journal: Journal
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    engines: list[EngineBuild] = field(default_factory=list)
    plans: list[Evidence] = field(default_factory=list)  # of the profiles that were planned
    data: dict[str, Digest] = field(default_factory=dict)  # source, ingested, dataset: once known
    policy: GatePolicy = field(default_factory=GatePolicy)

    @cached_property
    def trace_id(self) -> str:
        """32 hex digits, as traces are named: the flow run's own, where there is one."""
        return uuid.UUID(flow_run.id).hex if flow_run.id else uuid.uuid4().hex

    @cached_property
    def quarantine(self) -> ObjectStore:
        """Where this service's raw media lie while a release runs."""
        return self.workspace.quarantine(self.pipeline.service)

    @property
    def quarantine_folder(self) -> Path:
        return self.workspace.home.folder("quarantine", self.pipeline.service)

    def gate(self, verdict: Verdict) -> Verdict:
        """Record a verdict with its evidence, then stop the flow where the policy says so."""
        now_s = self.workspace.clock.wall_ns() / 1e9
        waived = apply_waivers(verdict, self.pipeline.gates.waivers, now_s)
        document = canonical_json(waived)
        digest = self.workspace.store.put(document)
        self.write_evidence(f"{waived.gate}.json", document)
        self.verdicts[waived.gate] = waived.with_evidence(Evidence(f"{waived.gate}.json", digest))
        reporter().finished(waived.gate, waived.outcome.value)
        if self.policy.stops(waived):
            self._keep_blocked()
        require_pass(waived, self.policy)
        return waived

    def _keep_blocked(self) -> None:
        """A stopped release has no record that would lead to its verdicts: name them here."""
        store = self.workspace.store
        verdicts = store.put(self.verdict_document())
        name = f"blocked/{self.pipeline.service}/{hex_of(verdicts)}"
        if store.reference(name) is None:
            store.set_reference(name, verdicts, expected=None)

    def write_evidence(self, name: str, document: bytes) -> None:
        """A readable copy of a document in the state folder, for people."""
        self.workspace.write_evidence(self.pipeline.service, name, document)

    def verdict_document(self) -> bytes:
        return canonical_json(list(self.verdicts.values()))

    def identity(self, *parts: Digest) -> Digest:
        """What is being released, whatever was measured on it: the user's file and these inputs."""
        return digest_value("release", {"pipeline": self.pipeline, "inputs": parts})

    @property
    def unchanged(self) -> bool:
        """Whether every step was recalled and every engine found: nothing was done again."""
        return all(step.cached for step in self.journal.runs) and all(
            build.cached for build in self.engines
        )

    def document(self) -> dict[str, Any]:
        """The part of the JSON answer that is known by now."""
        return {
            "service": self.pipeline.service,
            "verdicts": verdict_rows(self.verdicts.values()),
            "engines": engine_rows(self.engines),
            "steps": self.journal.runs,
        }
