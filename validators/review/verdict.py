"""The review gate's answer, and what stops a deployment without one."""

from __future__ import annotations

from validators.contracts.errors import AwaitingReview, Blocked
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude
from validators.review.rules import Standing, standing
from validators.review.state import ReviewState, ReviewStatus

GATE = "review"


def assess_review(state: ReviewState, now_s: float) -> Verdict:
    """PASS approved, WARN approved unattended, INCONCLUSIVE awaiting, FAIL rejected."""
    stands = standing(state, now_s)
    findings = _findings(state, stands)
    metrics = {
        "approvals": float(len(stands.approved_by)),
        "required_people": float(state.request.required_people),
    }
    return conclude(GATE, findings, examined=1, metrics=metrics)


def require_approval(state: ReviewState, now_s: float) -> None:
    """Let an approved bundle through.

    Raises:
        AwaitingReview: people have to decide first.  Blocked: it was rejected.
    """
    stands = standing(state, now_s)
    where = f"{state.request.model} {state.request.version}"
    if stands.status is ReviewStatus.REJECTED:
        raise Blocked(
            "the review was rejected",
            where=where,
            remedy="Read the reason with `modalgate review show`, then release a new bundle.",
        )
    if stands.status is ReviewStatus.AWAITING:
        raise AwaitingReview(
            f"the review is not finished. {' '.join(stands.lacking)}".rstrip("."),
            where=where,
            remedy="Approve or reject it with `modalgate review`.",
        )


def _findings(state: ReviewState, stands: Standing) -> list[Finding]:
    subject = f"{state.request.model}-{state.request.version}"
    if stands.status is ReviewStatus.REJECTED:
        return [
            Finding(
                GATE, "rejected", subject, Outcome.FAIL, "rejected", "approved",
                "Read the reason, and release a new bundle.", waivable=False,
            )
        ]  # fmt: skip
    if stands.status is ReviewStatus.AWAITING:
        return [
            Finding(
                GATE, "unfinished", subject, Outcome.INCONCLUSIVE, text,
                f"{state.request.required_people} people", "Decide the review.", waivable=False,
            )
            for text in stands.lacking
        ]  # fmt: skip
    if stands.unattended:
        return [
            Finding(
                GATE, "unattended", subject, Outcome.WARN,
                f"approved as {', '.join(stands.approved_by)} without anybody looking",
                f"{state.request.required_people} people",
                "Have people look before it leaves this machine.",
            )
        ]  # fmt: skip
    return []
