"""The end of a release: an approval, then the rollout; or a wait for people."""

from __future__ import annotations

from typing import Any

from prefect import task

from flows.progress import reporter
from flows.release.run import STEP, Release
from flows.review import Registered, Word, decide, describe, review_of, standing_of
from flows.rollout import CanaryRolledBack, roll_out
from validators.contracts.bundle import Bundle
from validators.contracts.digest import canonical_json
from validators.contracts.errors import AwaitingReview
from validators.contracts.ports import ModelVersion
from validators.review import Action, ReviewStatus
from validators.review.verdict import assess_review, require_approval

UNATTENDED_REASON = "approved by the command that released it"


def finish(release: Release, version: ModelVersion, bundle: Bundle) -> dict[str, Any]:
    """Review and deploy; what the JSON document says of both."""
    document: dict[str, Any] = {
        "bundle": bundle.digest,
        "model_version": {"name": version.model, "version": version.version},
        "deployment": None,
    }
    try:
        found = describe(release.workspace, version)
        approve_unattended(release, found)
        if release.options.deploy:
            document["deployment"] = deploy(release, found)
    except Exception as error:
        if hasattr(error, "attachment"):
            error.attachment = {**document, **error.attachment}
        raise
    return document


@task(name="review", **STEP)
def approve_unattended(release: Release, found: Registered) -> None:
    """Record the approvals that `--approve-as` names, and require the review to be done.

    Raises:
        AwaitingReview: people have to decide first.
        Refused: unattended approval where people decide.
    """
    reporter().started("review")
    workspace = release.workspace
    state = review_of(workspace, found)
    if standing_of(workspace, state) is ReviewStatus.AWAITING:
        for name in release.options.approve_as:
            word = Word(name, Action.APPROVE, UNATTENDED_REASON, unattended=True)
            state = decide(workspace, found, word)
    now_s = workspace.clock.wall_ns() / 1e9
    verdict = assess_review(state, now_s)
    release.verdicts[verdict.gate] = verdict
    release.write_evidence(f"{verdict.gate}.json", canonical_json(verdict))
    reporter().finished("review", verdict.outcome.value)
    try:
        require_approval(state, now_s)
    except AwaitingReview as error:
        service, number = found.version.model, found.version.version
        error.remedy = (
            f"Approve with: modalgate review approve {service} {number} --as NAME --reason TEXT; "
            f"then: modalgate deploy {service} {number}"
        )
        raise


@task(name="rollout", **STEP)
def deploy(release: Release, found: Registered) -> Any:
    """The canary, and its verdict beside those of the gates."""
    try:
        ended = roll_out(release.workspace, found, probe=True)
    except CanaryRolledBack as error:
        release.verdicts[error.verdict.gate] = error.verdict
        raise
    if ended.verdict is not None:
        release.verdicts[ended.verdict.gate] = ended.verdict
    return ended.status
