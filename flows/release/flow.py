"""The release flow: every gate in order, then review, canary, promotion.

    contracts → ingest → de-identify → privacy → quality → lineage
              → export → profiles → precision → engines → parity → learn (recall) → drift
              → compatibility → rehearsal → bundle → register → review → rollout

Each step is a small task that is recalled where its inputs were seen before. A gate that stops
raises; what was found until then travels with the error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from prefect import flow
from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows.interruption import interruptible
from flows.journal import Journal
from flows.lineage.tell import tell_stopped, tell_version
from flows.locks import exclusive, one_of
from flows.pipeline_reading import read_pipeline
from flows.release import baseline as against
from flows.release import bundle as bundles
from flows.release import data, engines, fitting, learn, precision, profiles, rehearsal, review
from flows.release.drift import check_drift
from flows.release.places import remember_pipeline, remember_place
from flows.release.recording import recording_asset
from flows.release.register import baseline_of, register
from flows.release.run import Release
from flows.release.values import Exported, ReleaseOptions, ReleaseRecord
from flows.retention import purge, tidied
from flows.room import require_room
from flows.workspace import Workspace
from validators.contracts.bundle import Bundle
from validators.contracts.dataset import Dataset
from validators.contracts.digest import canonical_json, digest_value
from validators.contracts.errors import BadInput, ModalgateError
from validators.contracts.pipeline import EncoderEntry, Pipeline
from validators.contracts.ports import ModelVersion

WORKERS = 2
"""Exports and builds at once; each runs in a child process with one thread."""

CONCURRENT_RELEASES = 2
"""On one machine. Places are locks, since an orchestrator's slots outlive a killed run."""

_RUNNER = cast(TaskRunner[PrefectFuture[Any]], ThreadPoolTaskRunner(max_workers=WORKERS))


@flow(
    name="release",
    task_runner=_RUNNER,
    validate_parameters=False,
)
def release(
    pipeline_path: str, author: str, approve_as: list[str] | None = None, deploy: bool = True
) -> dict[str, Any]:
    """Take a pipeline through every gate to a running service; the answer as one document.

    Args:
        pipeline_path: the user's file.
        author: who releases, for the ledger. Nobody approves a release of their own.
        approve_as: people of an unattended approval (local target with review.unattended only).
        deploy: False stops after the review.
    """
    path = Path(pipeline_path).resolve()
    options = ReleaseOptions(author, tuple(approve_as or ()), deploy)
    workspace = Workspace.open()
    pipeline = read_pipeline(path)
    _require_people(pipeline, options)
    workspace.target(pipeline.deployment.target)  # refused now rather than after the work
    run = Release(workspace, pipeline, path.parent, options, Journal(workspace.store))
    version: ModelVersion | None = None
    lock = workspace.home.lock(f"release-{pipeline.service}")
    places = [workspace.home.lock(f"release-place-{n}") for n in range(CONCURRENT_RELEASES)]
    with tidied(workspace), exclusive(lock, f"a release of {pipeline.service}"), one_of(*places):
        try:
            require_room(workspace.home, "a release")
            with interruptible():
                rehearsal.clear_leftovers(run)
                version, bundle = _gates(run)
                remember_pipeline(workspace, bundle.digest, path)
                ended = review.finish(run, version, bundle)
            tell_version(workspace, version)
            return {**run.document(), **ended, "unchanged": run.unchanged}
        except ModalgateError as error:
            error.attachment = {**error.attachment, **run.document()}
            if version is None:
                tell_stopped(run, error)
            else:
                tell_version(workspace, version)
            raise
        finally:
            purge(run.quarantine)


def _require_people(pipeline: Pipeline, options: ReleaseOptions) -> None:
    """Refuse unattended approval before the work, where the review would refuse it after."""
    deployment = pipeline.deployment
    if options.approve_as and not (deployment.target == "local" and deployment.review.unattended):
        raise BadInput(
            "this pipeline is approved by people, not by the command that releases it",
            where="deploy.review.unattended",
            remedy="Leave out --approve-as; it works for target local with unattended: true.",
        )


def _gates(run: Release) -> tuple[ModelVersion, Bundle]:
    workspace, pipeline = run.workspace, run.pipeline
    engines.check_contracts(run)
    raw = data.ingest(run)
    redacted = data.deidentify(run, raw)
    certificate = data.certify(run, redacted)
    clean = redacted.dataset
    data.check_quality(run, clean)
    fitting.require_held_out(pipeline, clean)

    waiting = {entry.name: engines.export.submit(run, entry) for entry in pipeline.encoders}
    exported = {name: future.result() for name, future in waiting.items()}
    planned = profiles.planned_entries(run, exported, clean)
    identity = run.identity(
        clean.digest,
        *(item.onnx for item in exported.values()),
        *(digest_value("profiles", entry.profiles) for entry in planned),
    )
    baseline = baseline_of(workspace, pipeline.service, identity)
    record = against.record_of_baseline(run, baseline)
    lineage = data.check_lineage(run, raw, clean, against.lineage_of(run, record), baseline)

    _build_engines(run, planned, exported, clean)
    deployed = {b.engine.encoder: b.engine for b in run.engines if b.engine.deploy}
    learned = learn.learn(run, clean, exported, deployed)
    check_drift(run, learned, (exported, deployed), record, baseline)
    against.check_compatibility(run, against.Candidate(clean, exported, deployed), record, baseline)

    kept = (recording_asset(run, clean),)
    parts = bundles.Parts(exported, learned, clean.digest, certificate, kept)
    probes = rehearsal.probes_of(clean, raw, data.texts_of(run, clean))
    draft = bundles.draft(run, parts)
    rehearsal.rehearse(run, rehearsal.Rehearsal(draft, probes, raw, learned.scores))
    bundle = bundles.compose(run, parts)
    remember_place(workspace, bundle.digest, run.base)

    store = workspace.store
    version = register(
        run,
        ReleaseRecord(
            bundle=bundle.digest,
            identity=identity,
            baseline=baseline.version.bundle if baseline.version else None,
            pipeline=store.put(canonical_json(pipeline)),
            dataset=store.put(canonical_json(clean)),
            lineage=lineage,
            window=learned.window,
            probes=store.put(canonical_json(probes)),
            certificate=certificate,
            verdicts=bundle.verdicts,
        ),
    )
    return version, bundle


def _build_engines(
    run: Release,
    entries: Sequence[EncoderEntry],
    exported: Mapping[str, Exported],
    clean: Dataset,
) -> None:
    """Engines of all encoders by all backends, two at a time, reported in the file's order."""
    chosen = precision.choose_precisions(run, entries, exported, clean)
    waiting = [
        engines.build_engine.submit(
            run,
            engines.EngineWork(
                entry,
                exported[entry.name],
                plan,
                clean,
                chosen.get(entry.name) if plan.deploy else None,
            ),
        )
        for plan in run.pipeline.backends
        for entry in entries
    ]
    made = [future.result() for future in waiting]
    run.engines += [build for build, _ in made]
    engines.judge_parity(run, [verdict for _, verdict in made if verdict is not None])
