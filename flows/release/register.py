"""The release in the registry: the record that later ones compare with, and the model version."""

from __future__ import annotations

from prefect import task

from flows.progress import reporter
from flows.release.bundle import find
from flows.release.run import STEP, Baseline, Release
from flows.release.values import ReleaseRecord
from flows.workspace import Workspace
from validators.contracts.digest import Digest, canonical_json, hex_of, short
from validators.contracts.documents import load
from validators.contracts.errors import NotFound
from validators.contracts.ports import ModelVersion

CANDIDATE, CHAMPION, ROLLBACK = "candidate", "champion", "rollback"
IDENTITY_TAG, AUTHOR_TAG = "modalgate.identity", "modalgate.author"


@task(name="register", **STEP)
def register(release: Release, record: ReleaseRecord) -> ModelVersion:
    """One model version a bundle, its evidence as artifacts, its outcomes as tags."""
    reporter().started("register")
    workspace, service = release.workspace, release.pipeline.service
    keep_record(workspace, record)
    evidence = {
        "bundle.json": find(workspace, record.bundle).document(),
        "pipeline.json": workspace.store.get(record.pipeline),
        "certificate.json": workspace.store.get(record.certificate),
        "verdicts.json": workspace.store.get(record.verdicts),
    }
    for verdict in release.verdicts.values():
        for item in verdict.evidence:
            evidence[item.name] = workspace.store.get(item.digest)
    tags = {IDENTITY_TAG: record.identity, AUTHOR_TAG: release.options.author}
    tags |= {f"gate.{name}": item.outcome.value for name, item in release.verdicts.items()}
    version = workspace.registry.register(service, record.bundle, evidence=evidence, tags=tags)
    _make_candidate(release, version)
    reporter().finished("register", f"{service} {version.version}")
    return version


def baseline_of(workspace: Workspace, service: str, identity: Digest) -> Baseline:
    """What a release of this identity is compared with.

    The champion; where the champion is this very release, what that one was compared with, so that
    a second run with nothing changed comes to the same verdicts.
    """
    champion = workspace.registry.alias(service, CHAMPION)
    if champion is None:
        return Baseline(None, champion_exists=False)
    if champion.tags.get(IDENTITY_TAG) != identity:
        return Baseline(champion, champion_exists=True)
    before = record_of(workspace, champion.bundle).baseline
    if before is None:
        return Baseline(None, champion_exists=False)
    known = workspace.registry.versions(service)
    return Baseline(next((v for v in known if v.bundle == before), None), champion_exists=True)


def keep_record(workspace: Workspace, record: ReleaseRecord) -> None:
    store, name = workspace.store, _record_reference(record.bundle)
    seen, digest = store.reference(name), store.put(canonical_json(record))
    if seen != digest:
        store.set_reference(name, digest, expected=seen)


def record_of(workspace: Workspace, bundle: Digest) -> ReleaseRecord:
    """The record of a registered bundle.

    Raises:
        NotFound: this store never saw the release.
    """
    digest = workspace.store.reference(_record_reference(bundle))
    if digest is None:
        raise NotFound(
            f"the store has no record of bundle {short(bundle)}",
            where=_record_reference(bundle),
            remedy="Point MODALGATE_STORE at the store that the release was made with.",
        )
    return load(ReleaseRecord, workspace.store.get(digest), where=digest)


def _record_reference(bundle: Digest) -> str:
    return f"releases/{hex_of(bundle)}"


def _make_candidate(release: Release, version: ModelVersion) -> None:
    """Point the alias `candidate` here, unless this version is live already."""
    registry, service = release.workspace.registry, release.pipeline.service
    champion, now = registry.alias(service, CHAMPION), registry.alias(service, CANDIDATE)
    if version.version in {item.version for item in (champion, now) if item is not None}:
        return
    registry.move_alias(
        service,
        CANDIDATE,
        version.version,
        expected=now.version if now else None,
        actor=release.options.author,
        reason="released",
    )
