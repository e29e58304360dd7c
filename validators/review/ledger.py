"""Decisions in the ledger: the ledger is the record, a review is what follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from validators.contracts.digest import Digest
from validators.contracts.errors import ModalgateError
from validators.contracts.ports import LedgerEntry
from validators.review.rules import approve, reject, request_changes
from validators.review.state import Action, ReviewDecision, ReviewRequest, ReviewState

_VERBS = {
    Action.APPROVE: approve,
    Action.REJECT: reject,
    Action.REQUEST_CHANGES: request_changes,
}


def details_of(decision: ReviewDecision) -> Mapping[str, str]:
    """What the ledger entry of a decision has to hold, so that it counts for this bundle only."""
    return {
        "bundle": decision.bundle,
        "evidence": decision.evidence,
        "unattended": "true" if decision.unattended else "false",
    }


def from_ledger(entries: Iterable[LedgerEntry], request: ReviewRequest) -> ReviewState:
    """The review of `request` as the ledger tells it, in the ledger's order.

    Entries are judged by the rules again, at their own time: an approval that was written past the
    rules (by the author, for another bundle, after the end) does not count.
    """
    state = ReviewState(request)
    for entry in sorted(entries, key=lambda item: item.sequence):
        decision = _decision(entry, request)
        if decision is None:
            continue
        try:
            state = _VERBS[decision.action](state, decision)
        except ModalgateError:
            continue  # refused then as it would be now
    return state


def _decision(entry: LedgerEntry, request: ReviewRequest) -> ReviewDecision | None:
    actions = {action.value: action for action in Action}
    if (entry.model, entry.version) != (request.model, request.version):
        return None
    if entry.action not in actions:
        return None
    details = dict(entry.details)
    return ReviewDecision(
        entry.actor,
        actions[entry.action],
        Digest(details.get("bundle", "")),
        Digest(details.get("evidence", "")),
        entry.reason,
        entry.at_ms / 1000,
        details.get("unattended") == "true",
    )
