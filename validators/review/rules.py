"""A decision is proposed, and small named rules accept or refuse it.

Two kinds: rules over a decision (may this person say this, about this bundle, now), and rules over
the whole review (what does it still lack). A rejection ends a review; asked-for changes hold it
until the person who asked approves. An unattended approval is typed by the command that releases,
so it settles the review alone and is called what it is: nobody looked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from validators.contracts.errors import BadInput, Blocked, Conflict, ModalgateError, Refused
from validators.review.state import (
    Action,
    ReviewDecision,
    ReviewState,
    ReviewStatus,
    person,
)

UNATTENDED_TARGET = "local"
MAX_REASON_CHARACTERS = 2000

DecisionRule = Callable[[ReviewState, ReviewDecision], ModalgateError | None]
Lack = Callable[[ReviewState, float], str | None]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a review stands. `lacking` says what is missing, a sentence each."""

    status: ReviewStatus
    lacking: tuple[str, ...]
    approved_by: tuple[str, ...]
    unattended: bool


def approve(state: ReviewState, decision: ReviewDecision) -> ReviewState:
    """The review with an approval. The same person's second approval changes nothing.

    Raises:
        BadInput: no name or reason.  Conflict: the review is over or has expired.
        Refused: another bundle or evidence, the author's own, or unattended where people decide.
        Blocked: a required gate or the certificate is missing or stops.
    """
    return _decide(state, decision, Action.APPROVE, (*COMMON, *APPROVAL))


def reject(state: ReviewState, decision: ReviewDecision) -> ReviewState:
    """The review, ended. Anybody may reject, the author too.

    Raises:
        BadInput: no name or reason.  Conflict: the review is over.  Refused: another bundle.
    """
    return _decide(state, decision, Action.REJECT, (*COMMON, must_be_attended))


def request_changes(state: ReviewState, decision: ReviewDecision) -> ReviewState:
    """The review, held until this person approves. Raises as `reject` does."""
    return _decide(state, decision, Action.REQUEST_CHANGES, (*COMMON, must_be_attended))


def standing(state: ReviewState, now_s: float) -> Standing:
    """Where the review stands at a time (wall, seconds), with what it lacks."""
    unattended = any(item.unattended for item in _approvals(state))
    names = tuple(item.actor for item in _approvals(state))
    if any(item.action is Action.REJECT for item in state.decisions):
        return Standing(ReviewStatus.REJECTED, ("It was rejected.",), names, unattended)
    lacking = tuple(text for lack in LACKS if (text := lack(state, now_s)) is not None)
    status = ReviewStatus.AWAITING if lacking else ReviewStatus.APPROVED
    return Standing(status, lacking, names, unattended)


def status(state: ReviewState, now_s: float) -> ReviewStatus:
    return standing(state, now_s).status


def needs_a_name_and_a_reason(
    state: ReviewState, decision: ReviewDecision
) -> ModalgateError | None:
    if not person(decision.actor):
        return BadInput("a decision needs the name of who decides")
    if not decision.reason.strip() or len(decision.reason) > MAX_REASON_CHARACTERS:
        return BadInput(
            f"a decision needs a reason of at most {MAX_REASON_CHARACTERS} characters",
            remedy="Say in a sentence what was looked at.",
        )
    return None


def must_be_about_this_bundle(
    state: ReviewState, decision: ReviewDecision
) -> ModalgateError | None:
    request = state.request
    if (decision.bundle, decision.evidence) == (request.bundle, request.evidence):
        return None
    return Refused(
        "the bundle or its evidence is not what was looked at",
        where=f"{request.model} {request.version}",
        remedy="Show the review again and decide on what it holds now.",
    )


def must_be_open(state: ReviewState, decision: ReviewDecision) -> ModalgateError | None:
    if any(item.action is Action.REJECT for item in state.decisions):
        return Conflict(
            "the review has ended with a rejection",
            where=f"{state.request.model} {state.request.version}",
            remedy="Release again: a new bundle gets a new review.",
        )
    return None


def must_be_in_time(state: ReviewState, decision: ReviewDecision) -> ModalgateError | None:
    if state.request.expires_s is not None and decision.at_s >= state.request.expires_s:
        return Conflict(
            "the review has expired",
            where=f"{state.request.model} {state.request.version}",
            remedy="Release again: the gates are run on what is true now.",
        )
    return None


def must_not_be_the_author(state: ReviewState, decision: ReviewDecision) -> ModalgateError | None:
    if decision.unattended or person(decision.actor) != person(state.request.author):
        return None
    return Refused(
        "nobody approves a bundle of their own",
        where=f"{state.request.model} {state.request.version}",
        remedy="Ask somebody else.",
    )


def must_be_attended(state: ReviewState, decision: ReviewDecision) -> ModalgateError | None:
    """Only approvals can be unattended."""
    return BadInput("only an approval can be unattended") if decision.unattended else None


def may_be_unattended(state: ReviewState, decision: ReviewDecision) -> ModalgateError | None:
    if not decision.unattended or _accepts_unattended(state):
        return None
    return Refused(
        "this deployment is approved by people, not by the command that releases it",
        where=f"target {state.request.target}",
        remedy="Leave out --approve-as; it works for target local with review.unattended: true.",
    )


def needs_passing_gates(state: ReviewState, decision: ReviewDecision) -> ModalgateError | None:
    stopped = _stopped_gates(state)
    if not stopped:
        return None
    return Blocked(
        f"required gates are missing or stop: {', '.join(stopped)}",
        where=f"{state.request.model} {state.request.version}",
        remedy="Release again once they pass, or have their findings waived.",
    )


def needs_a_certificate(state: ReviewState, decision: ReviewDecision) -> ModalgateError | None:
    if state.request.certificate is not None:
        return None
    return Blocked(
        "the privacy certificate is missing",
        where=f"{state.request.model} {state.request.version}",
        remedy="Run the release with its privacy gate.",
    )


COMMON: tuple[DecisionRule, ...] = (
    needs_a_name_and_a_reason,
    must_be_about_this_bundle,
    must_be_open,
)
APPROVAL: tuple[DecisionRule, ...] = (
    must_be_in_time,
    must_not_be_the_author,
    may_be_unattended,
    needs_passing_gates,
    needs_a_certificate,
)


def lacks_time(state: ReviewState, now_s: float) -> str | None:
    if state.request.expires_s is None or now_s < state.request.expires_s:
        return None
    return "It has expired: release again."


def lacks_gates(state: ReviewState, now_s: float) -> str | None:
    stopped = _stopped_gates(state)
    return f"These gates are missing or stop: {', '.join(stopped)}." if stopped else None


def lacks_certificate(state: ReviewState, now_s: float) -> str | None:
    return "It has no privacy certificate." if state.request.certificate is None else None


def lacks_agreement(state: ReviewState, now_s: float) -> str | None:
    """Who asked for changes and has not approved since."""
    latest = {person(item.actor): item for item in state.decisions}
    open_requests = [
        item.actor for item in latest.values() if item.action is Action.REQUEST_CHANGES
    ]
    return f"Changes were asked for by {', '.join(open_requests)}." if open_requests else None


def lacks_people(state: ReviewState, now_s: float) -> str | None:
    approvals = _approvals(state)
    if any(item.unattended for item in approvals):
        return None
    wanted = max(state.request.required_people, 1)
    if len(approvals) >= wanted:
        return None
    return f"{len(approvals)} of {wanted} people have approved."


LACKS: tuple[Lack, ...] = (
    lacks_time,
    lacks_gates,
    lacks_certificate,
    lacks_agreement,
    lacks_people,
)


def _decide(
    state: ReviewState, decision: ReviewDecision, action: Action, rules: Iterable[DecisionRule]
) -> ReviewState:
    decision = replace(decision, action=action)
    for rule in rules:
        refusal = rule(state, decision)
        if refusal is not None:
            raise refusal
    if action is Action.APPROVE and any(
        person(item.actor) == person(decision.actor) for item in _approvals(state)
    ):
        return state
    return replace(state, decisions=(*state.decisions, decision))


def _approvals(state: ReviewState) -> tuple[ReviewDecision, ...]:
    """The approvals in force: each person's latest word, where that is one."""
    latest = {person(item.actor): item for item in state.decisions}
    return tuple(item for item in latest.values() if item.action is Action.APPROVE)


def _accepts_unattended(state: ReviewState) -> bool:
    return state.request.unattended_allowed and state.request.target == UNATTENDED_TARGET


def _stopped_gates(state: ReviewState) -> tuple[str, ...]:
    """Required gates without an outcome, and every gate whose outcome stops."""
    request = state.request
    known = {gate for gate, _ in request.gates}
    missing = [gate for gate in request.required_gates if gate not in known]
    stopped = [gate for gate, outcome in request.gates if request.stops_at <= outcome]
    return tuple(dict.fromkeys([*missing, *stopped]))
