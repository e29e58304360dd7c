from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.contracts.digest import digest_bytes
from validators.contracts.errors import (
    AwaitingReview,
    BadInput,
    Blocked,
    Conflict,
    ModalgateError,
    Refused,
)
from validators.contracts.ports import LedgerEntry
from validators.contracts.verdict import Outcome
from validators.review import (
    Action,
    ReviewDecision,
    ReviewRequest,
    ReviewState,
    ReviewStatus,
    approve,
    assess_review,
    details_of,
    from_ledger,
    reject,
    request_changes,
    require_approval,
    standing,
    status,
)

BUNDLE, EVIDENCE, OTHER = (digest_bytes(text) for text in (b"bundle", b"evidence", b"other"))
REQUEST = ReviewRequest(
    model="storefront",
    version="3",
    bundle=BUNDLE,
    evidence=EVIDENCE,
    author="ana",
    target="local",
    gates=(("parity", Outcome.PASS), ("privacy", Outcome.WARN)),
    required_gates=("parity", "privacy"),
    certificate=OTHER,
    expires_s=1000.0,
)
VERBS: dict[Action, Callable[[ReviewState, ReviewDecision], ReviewState]] = {
    Action.APPROVE: approve,
    Action.REJECT: reject,
    Action.REQUEST_CHANGES: request_changes,
}
UNATTENDED = replace(REQUEST, unattended_allowed=True)


def by(actor: str, action: Action = Action.APPROVE, at_s: float = 10.0) -> ReviewDecision:
    return ReviewDecision(actor, action, BUNDLE, EVIDENCE, "looked at the table", at_s)


def approved(request: ReviewRequest, *actors: str) -> ReviewState:
    state = ReviewState(request)
    for actor in actors:
        state = approve(state, by(actor))
    return state


def test_two_people_who_are_not_the_author_let_a_bundle_through() -> None:
    state = approved(REQUEST, "ben")
    assert status(state, 10) is ReviewStatus.AWAITING
    with pytest.raises(AwaitingReview, match="1 of 2"):
        require_approval(state, 10)
    state = approve(state, by("cem"))
    assert status(state, 10) is ReviewStatus.APPROVED
    require_approval(state, 10)
    assert assess_review(state, 10).outcome is Outcome.PASS


@pytest.mark.parametrize("spelling", ["ben", "Ben", "  BEN ", "ｂｅｎ"])
def test_one_person_counts_once_however_the_name_is_spelt(spelling: str) -> None:
    state = approved(REQUEST, "ben", spelling)
    assert status(state, 10) is ReviewStatus.AWAITING and len(state.decisions) == 1


@pytest.mark.parametrize(
    ("request_", "decision", "error"),
    [
        (REQUEST, by("ana"), Refused),
        (REQUEST, by(" Ana"), Refused),
        (REQUEST, by(""), BadInput),
        (REQUEST, replace(by("ben"), reason=" "), BadInput),
        (REQUEST, replace(by("ben"), reason="a" * 2001), BadInput),
        (REQUEST, replace(by("ben"), bundle=OTHER), Refused),
        (REQUEST, replace(by("ben"), evidence=OTHER), Refused),
        (REQUEST, by("ben", at_s=1000.0), Conflict),
        (REQUEST, replace(by("ben"), unattended=True), Refused),
        (replace(UNATTENDED, target="kserve"), replace(by("ben"), unattended=True), Refused),
        (replace(REQUEST, certificate=None), by("ben"), Blocked),
        (replace(REQUEST, required_gates=("drift",)), by("ben"), Blocked),
        (replace(REQUEST, gates=(("parity", Outcome.FAIL),)), by("ben"), Blocked),
        (replace(REQUEST, gates=(("parity", Outcome.INCONCLUSIVE),)), by("ben"), Blocked),
    ],
)
def test_an_approval_that_breaks_a_rule_is_refused(
    request_: ReviewRequest, decision: ReviewDecision, error: type[ModalgateError]
) -> None:
    with pytest.raises(error):
        approve(ReviewState(request_), decision)


def test_a_rejection_ends_a_review_even_by_the_author() -> None:
    state = reject(approved(REQUEST, "ben", "cem"), by("ana"))
    assert status(state, 10) is ReviewStatus.REJECTED
    for verb in VERBS.values():
        with pytest.raises(Conflict):
            verb(state, by("dora"))
    with pytest.raises(Blocked):
        require_approval(state, 10)
    assert assess_review(state, 10).outcome is Outcome.FAIL


def test_asked_for_changes_hold_until_the_one_who_asked_approves() -> None:
    state = request_changes(approved(REQUEST, "ben", "cem"), by("dora"))
    assert "dora" in standing(state, 10).lacking[0]
    state = approve(state, by("dora"))
    assert status(state, 10) is ReviewStatus.APPROVED


def test_who_asks_for_changes_withdraws_an_approval() -> None:
    state = request_changes(approved(REQUEST, "ben", "cem"), by("cem"))
    assert standing(state, 10).approved_by == ("ben",)


def test_an_approved_review_expires() -> None:
    state = approved(REQUEST, "ben", "cem")
    assert status(state, 999) is ReviewStatus.APPROVED
    assert status(state, 1000) is ReviewStatus.AWAITING


def test_an_unattended_approval_settles_a_local_review_and_is_called_so() -> None:
    state = approve(ReviewState(UNATTENDED), replace(by("ana"), unattended=True))
    assert status(state, 10) is ReviewStatus.APPROVED
    verdict = assess_review(state, 10)
    assert verdict.outcome is Outcome.WARN
    assert [finding.code for finding in verdict.findings] == ["unattended"]


@pytest.mark.parametrize("verb", [reject, request_changes])
def test_only_an_approval_can_be_unattended(
    verb: Callable[[ReviewState, ReviewDecision], ReviewState],
) -> None:
    with pytest.raises(BadInput):
        verb(ReviewState(UNATTENDED), replace(by("ben"), unattended=True))


def test_nobody_required_still_needs_one() -> None:
    request = replace(REQUEST, required_people=0)
    assert status(ReviewState(request), 10) is ReviewStatus.AWAITING


def entry(sequence: int, decision: ReviewDecision, version: str = "3") -> LedgerEntry:
    return LedgerEntry(
        sequence,
        int(decision.at_s * 1000),
        decision.actor,
        decision.action.value,
        "storefront",
        version,
        decision.reason,
        tuple(details_of(decision).items()),
        OTHER,
        OTHER,
    )


def test_a_review_is_rebuilt_from_the_ledger() -> None:
    entries = [
        entry(2, by("cem")),
        entry(1, by("ben")),
        replace(entry(3, by("ben")), action="deploy"),
    ]
    assert from_ledger(entries, REQUEST) == approved(REQUEST, "ben", "cem")


@pytest.mark.parametrize(
    "second",
    [
        entry(2, by("ana")),
        entry(2, replace(by("cem"), bundle=OTHER)),
        entry(2, replace(by("cem"), evidence=OTHER)),
        entry(2, replace(by("cem"), unattended=True)),
        entry(2, by("cem", at_s=2000)),
        entry(2, by("cem"), version="2"),
        replace(entry(2, by("cem")), details=()),
    ],
)
def test_an_entry_written_past_the_rules_does_not_count(second: LedgerEntry) -> None:
    state = from_ledger([entry(1, by("ben")), second], REQUEST)
    assert state == approved(REQUEST, "ben")


def rolled_back(sequence: int, model: str = "storefront", version: str = "3") -> LedgerEntry:
    written = replace(entry(sequence, by("ops"), version), model=model, details=())
    return replace(written, action="roll-back")


def test_a_version_that_was_rolled_back_has_to_be_approved_again() -> None:
    before = [entry(1, by("ben")), entry(2, by("cem")), rolled_back(3)]
    state = from_ledger(before, REQUEST)
    assert standing(state, 10).approved_by == ()
    assert status(state, 10) is ReviewStatus.AWAITING
    again = from_ledger([*before, entry(4, by("ben")), entry(5, by("cem"))], REQUEST)
    assert again == approved(REQUEST, "ben", "cem")


@pytest.mark.parametrize("other", [rolled_back(3, model="else"), rolled_back(3, version="2")])
def test_another_version_rolled_back_takes_no_approval_away(other: LedgerEntry) -> None:
    entries = [entry(1, by("ben")), entry(2, by("cem")), other]
    assert from_ledger(entries, REQUEST) == approved(REQUEST, "ben", "cem")


def test_an_objection_outlives_a_roll_back_unless_it_was_settled() -> None:
    entries = [
        entry(1, by("ben", Action.REQUEST_CHANGES)),
        entry(2, by("cem", Action.REQUEST_CHANGES)),
        entry(3, by("cem")),
        rolled_back(4),
    ]
    state = from_ledger(entries, REQUEST)
    assert [item.actor for item in state.decisions] == ["ben"]
    rejected = from_ledger([entry(1, by("ben", Action.REJECT)), rolled_back(2)], REQUEST)
    assert status(rejected, 10) is ReviewStatus.REJECTED


actors = st.sampled_from(["ana", "ben", "Ben", "cem", "dora"])
decisions = st.lists(st.tuples(actors, st.sampled_from(Action), st.booleans(), st.booleans()))


@given(decisions, st.integers(1, 3), st.booleans())
def test_no_sequence_of_decisions_passes_without_enough_people(
    words: list[tuple[str, Action, bool, bool]], people: int, unattended_allowed: bool
) -> None:
    request = replace(REQUEST, required_people=people, unattended_allowed=unattended_allowed)
    state = ReviewState(request)
    for actor, action, own_bundle, unattended in words:
        decision = replace(
            by(actor, action), bundle=BUNDLE if own_bundle else OTHER, unattended=unattended
        )
        with contextlib.suppress(ModalgateError):
            state = VERBS[action](state, decision)
    if status(state, 10) is not ReviewStatus.APPROVED:
        return
    assert all(item.action is not Action.REJECT for item in state.decisions)
    attended = {
        item.actor.lower()
        for item in state.decisions
        if item.action is Action.APPROVE and not item.unattended
    }
    if any(item.unattended for item in state.decisions):
        assert unattended_allowed
    else:
        assert len(attended) >= people and "ana" not in attended
    entries = [entry(number, item) for number, item in enumerate(state.decisions)]
    assert from_ledger(entries, request) == state
