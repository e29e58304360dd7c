"""Decisions in the ledger: the ledger is the record, a review is what follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from validators.contracts.digest import Digest
from validators.contracts.errors import ModalgateError
from validators.contracts.ports import LedgerEntry
from validators.review.rules import approve, reject, request_changes
from validators.review.state import Action, ReviewDecision, ReviewRequest, ReviewState, person

ROLL_BACK = "roll-back"
"""The ledger's word for a version that gave the traffic back."""

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
    rules (by the author, for another bundle, after the end) does not count. A version that was
    rolled back has lost the approvals given before: people look at it again, knowing that.
    """
    state = ReviewState(request)
    for entry in sorted(entries, key=lambda item: item.sequence):
        if _rolled_back(entry, request):
            state = _without_approvals(state)
            continue
        decision = _decision(entry, request)
        if decision is None:
            continue
        try:
            state = _VERBS[decision.action](state, decision)
        except ModalgateError:
            continue  # refused then as it would be now
    return state


def _rolled_back(entry: LedgerEntry, request: ReviewRequest) -> bool:
    of_this = (entry.model, entry.version) == (request.model, request.version)
    return of_this and entry.action == ROLL_BACK


def _without_approvals(state: ReviewState) -> ReviewState:
    """Rejections stand, and so does what somebody asked to change and has not approved since."""
    latest = {person(item.actor): item for item in state.decisions}
    kept = (
        item
        for item in state.decisions
        if item.action is Action.REJECT
        or (item.action is Action.REQUEST_CHANGES and item is latest[person(item.actor)])
    )
    return replace(state, decisions=tuple(kept))


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
