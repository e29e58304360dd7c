"""Reviews of registered versions: what is asked, who decided what, and what that amounts to."""

from __future__ import annotations

from dataclasses import dataclass

from flows.release.bundle import find
from flows.release.register import AUTHOR_TAG, record_of
from flows.release.values import ReleaseRecord
from flows.workspace import Workspace
from services.deidentify.policy import load_policy
from services.privacy_audit.certificate import verify_certificate
from validators.contracts.bundle import Bundle
from validators.contracts.documents import load
from validators.contracts.errors import Blocked, NotFound
from validators.contracts.pipeline import Pipeline
from validators.contracts.ports import ModelVersion
from validators.contracts.verdict import Verdict
from validators.review import (
    Action,
    ReviewDecision,
    ReviewRequest,
    ReviewState,
    ReviewStatus,
    approve,
    details_of,
    from_ledger,
    reject,
    status,
)

REQUIRED_GATES = (
    "contracts", "ingest", "privacy", "quality", "lineage", "parity", "recall", "drift",
    "compatibility", "rehearsal",
)  # fmt: skip
"""Every gate of the release flow: a version that skipped one is not approved."""

PRECISION = "precision"
"""Required where the pipeline leaves a precision to measurement."""

_VERBS = {Action.APPROVE: approve, Action.REJECT: reject}


@dataclass(frozen=True, slots=True)
class Registered:
    """A model version with everything that was recorded of it."""

    version: ModelVersion
    record: ReleaseRecord
    bundle: Bundle
    pipeline: Pipeline
    verdicts: tuple[Verdict, ...]


def registered(workspace: Workspace, service: str, version: str | None) -> Registered:
    """A version by its number, or the newest.

    Raises:
        NotFound: no such version.  Refused: a document of it does not hold.
    """
    return describe(workspace, choose(workspace, service, version))


def choose(workspace: Workspace, service: str, version: str | None) -> ModelVersion:
    """A version by its number, or the newest. Raises NotFound."""
    if version is not None:
        return workspace.registry.version(service, version)
    known = workspace.registry.versions(service)
    if not known:
        raise NotFound(
            f"nothing of {service!r} is registered",
            where=service,
            remedy="Release it first: modalgate release pipeline.yaml",
        )
    return max(known, key=lambda item: int(item.version))


def describe(workspace: Workspace, version: ModelVersion) -> Registered:
    """Everything recorded of a version, each document checked against its digest."""
    record = record_of(workspace, version.bundle)
    store = workspace.store
    return Registered(
        version,
        record,
        find(workspace, version.bundle),
        load(Pipeline, store.get(record.pipeline), where=record.pipeline),
        load(tuple[Verdict, ...], store.get(record.verdicts), where=record.verdicts),
    )


def review_of(workspace: Workspace, found: Registered) -> ReviewState:
    """The review of a version as the ledger tells it."""
    deployment = found.pipeline.deployment
    request = ReviewRequest(
        model=found.version.model,
        version=found.version.version,
        bundle=found.version.bundle,
        evidence=found.record.verdicts,
        author=found.version.tags.get(AUTHOR_TAG, ""),
        target=deployment.target,
        gates=tuple((verdict.gate, verdict.outcome) for verdict in found.verdicts),
        required_gates=_required_gates(found.pipeline),
        certificate=found.record.certificate,
        required_people=deployment.review.people,
        unattended_allowed=deployment.review.unattended,
    )
    return from_ledger(workspace.ledger.entries(found.version.model), request)


def _required_gates(pipeline: Pipeline) -> tuple[str, ...]:
    measured = any(pipeline.measures_precision(entry) for entry in pipeline.encoders)
    return (*REQUIRED_GATES, PRECISION) if measured else REQUIRED_GATES


@dataclass(frozen=True, slots=True)
class Word:
    """What one person says of a version."""

    actor: str
    action: Action
    reason: str
    unattended: bool = False


def decide(workspace: Workspace, found: Registered, word: Word) -> ReviewState:
    """Record a decision, where the rules accept it; an approval given twice is recorded once.

    Raises:
        As `validators.review.approve` and `reject` do; then nothing is recorded.
    """
    before = review_of(workspace, found)
    decision = ReviewDecision(
        actor=word.actor,
        action=word.action,
        bundle=found.version.bundle,
        evidence=found.record.verdicts,
        reason=word.reason,
        at_s=workspace.clock.wall_ns() / 1e9,
        unattended=word.unattended,
    )
    after = _VERBS[word.action](before, decision)
    if after != before:
        workspace.ledger.append(
            actor=word.actor,
            action=word.action.value,
            model=found.version.model,
            version=found.version.version,
            reason=word.reason,
            details=details_of(decision),
        )
    return after


def standing_of(workspace: Workspace, state: ReviewState) -> ReviewStatus:
    return status(state, workspace.clock.wall_ns() / 1e9)


def require_certificate(workspace: Workspace, found: Registered) -> None:
    """The deployment demands a certificate: signed, whole, and about this bundle's own data.

    Raises:
        Blocked: it is gone.  Refused: it was changed, or is about other data or another policy.
    """
    policy = load_policy(found.pipeline.gates.privacy_policy)
    try:
        document = workspace.store.get(found.bundle.certificate)
    except NotFound as error:
        raise Blocked(
            "the bundle's privacy certificate is not in the store",
            where=f"{found.version.model} {found.version.version}",
            remedy="Restore the store, or release again.",
        ) from error
    verify_certificate(
        document, workspace.verifier, dataset=found.bundle.dataset, policy=policy.digest
    )
