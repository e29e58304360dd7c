"""Registering a bundle in MLflow in steps that a crash can interrupt anywhere.

run opened → evidence stored → model made → version made (with all its tags, in one step) → run
closed. A run that is still open marks unfinished work. The next registration that holds the same
lock finishes the one of its own bundle and removes the rest: whoever held the lock is dead.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Experiment, Run, RunStatus
from mlflow.entities.model_registry import ModelVersion as MlflowVersion
from mlflow.exceptions import MlflowException
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

from infra.registry.evidence import write_files
from validators.contracts.digest import Digest, digest_bytes, require_digest, short
from validators.contracts.errors import Conflict
from validators.contracts.ports import Clock

BUNDLE_TAG = "modalgate.bundle"
EVIDENCE_TAG = "modalgate.evidence"
LOCK_TAG = "modalgate.lock"

_PAGE = 200


@dataclass(frozen=True, slots=True)
class Registrar:
    """Writes to one MLflow. The caller holds the lock that `lock_id` names.

    `on_step` is told the name of every step that is done.
    """

    client: MlflowClient
    tracking_uri: str
    artifact_root: str | None
    lock_id: str
    clock: Clock
    on_step: Callable[[str], None]

    def register(
        self, model: str, bundle: Digest, evidence: Mapping[str, bytes], tags: Mapping[str, str]
    ) -> MlflowVersion:
        """The version of this bundle: found, finished, or made."""
        experiment = self._experiment(model)
        self._tidy(experiment, model, bundle)
        version = self._find(model, bundle)
        if version is None:
            version = self._make(experiment, model, bundle, evidence, tags)
        run = self.client.get_run(version.run_id or "")
        if _is_open(run):
            self._close(run)
        return version

    def _make(
        self, experiment: str, model: str, bundle: Digest, evidence: Mapping[str, bytes],
        tags: Mapping[str, str],
    ) -> MlflowVersion:  # fmt: skip
        run = self._run(experiment, bundle)
        self.on_step("run")
        with tempfile.TemporaryDirectory(prefix="modalgate-evidence-") as folder:
            manifest_digest = digest_bytes(write_files(evidence, Path(folder)).document())
            self.client.log_artifacts(run.info.run_id, folder)
        self.on_step("evidence")
        self._ensure_model(model)
        self.on_step("model")
        version = self.client.create_model_version(
            model,
            source=run.info.artifact_uri,
            run_id=run.info.run_id,
            tags={**tags, BUNDLE_TAG: bundle, EVIDENCE_TAG: manifest_digest},
            description=f"bundle {bundle}",
            await_creation_for=0,
        )
        self.on_step("version")
        return version

    def _tidy(self, experiment: str, model: str, bundle: Digest) -> None:
        """Settle what killed holders of this lock left open for other bundles."""
        for run in self._runs(experiment, f"tags.`{LOCK_TAG}` = '{self.lock_id}'"):
            if not _is_open(run):
                continue
            left = require_digest(run.data.tags.get(BUNDLE_TAG, ""))
            version = self._find(model, left)
            if version is not None and version.run_id == run.info.run_id:
                self._close(run)
            elif left != bundle or version is not None:
                self._remove(run)

    def _run(self, experiment: str, bundle: Digest) -> Run:
        """The unfinished run of this bundle, or a new one."""
        tags = {BUNDLE_TAG: bundle, LOCK_TAG: self.lock_id}
        query = " and ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items())
        for run in self._runs(experiment, query):
            self._remove_artifacts(run)  # perhaps half-stored, perhaps of another set
            return run
        now_ms = self.clock.wall_ns() // 1_000_000
        return self.client.create_run(
            experiment, start_time=now_ms, tags=tags, run_name=f"bundle-{short(bundle)}"
        )

    def _close(self, run: Run) -> None:
        now_ms = self.clock.wall_ns() // 1_000_000
        self.client.set_terminated(run.info.run_id, "FINISHED", end_time=now_ms)
        self.on_step("closed")

    def _remove(self, run: Run) -> None:
        """Artifacts first: until the run itself is gone, the next call tries again."""
        self._remove_artifacts(run)
        self.client.delete_run(run.info.run_id)

    def _remove_artifacts(self, run: Run) -> None:
        store = get_artifact_repository(run.info.artifact_uri, tracking_uri=self.tracking_uri)
        if store.list_artifacts():
            store.delete_artifacts()  # type: ignore[no-untyped-call]

    def _experiment(self, model: str) -> str:
        name = f"modalgate/{model}"
        found = self.client.get_experiment_by_name(name)
        if found is None:
            location = f"{self.artifact_root}/{model}" if self.artifact_root else None
            try:
                return str(self.client.create_experiment(name, artifact_location=location))
            except MlflowException as error:
                found = self.client.get_experiment_by_name(name)
                if found is None:
                    raise error
        return _active(found)

    def _ensure_model(self, model: str) -> None:
        try:
            self.client.create_registered_model(model, description="Releases made by Modalgate")
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise

    def _find(self, model: str, bundle: Digest) -> MlflowVersion | None:
        query = f"name = '{model}' and tags.`{BUNDLE_TAG}` = '{bundle}'"
        found = self.client.search_model_versions(query, max_results=_PAGE)
        return min(found, key=lambda version: int(version.version), default=None)

    def _runs(self, experiment: str, query: str) -> list[Run]:
        """Active runs, oldest first."""
        order = ["attributes.start_time ASC"]
        runs: list[Run] = []
        token: str | None = None
        while True:
            page = self.client.search_runs(
                [experiment], query, max_results=_PAGE, order_by=order, page_token=token
            )
            runs += page
            token = page.token
            if not token:
                return runs


def _is_open(run: Run) -> bool:
    return not RunStatus.is_terminated(RunStatus.from_string(run.info.status))


def _active(experiment: Experiment) -> str:
    if experiment.lifecycle_stage != "active":
        raise Conflict(
            "the MLflow experiment of this model was deleted",
            where=experiment.name,
            remedy=f"Run: mlflow experiments restore -x {experiment.experiment_id}",
        )
    return str(experiment.experiment_id)
