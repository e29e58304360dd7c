from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from validators.contracts.errors import AwaitingReview
from validators.contracts.ports import LedgerEntry
from validators.contracts.verdict import GatePolicy, Outcome
from validators.review import ReviewRequest, assess_review, from_ledger, require_approval

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Scenario:
    request: ReviewRequest
    now_s: float
    entries: tuple[LedgerEntry, ...]


def read(name: str) -> Scenario:
    return msgspec.json.decode((HERE / f"{name}.json").read_bytes(), type=Scenario)


def test_one_person_the_author_and_a_word_on_another_bundle_are_not_two_people() -> None:
    given = read("blocks")
    state = from_ledger(given.entries, given.request)
    verdict = assess_review(state, given.now_s)
    assert verdict.outcome is Outcome.INCONCLUSIVE and GatePolicy().stops(verdict)
    with pytest.raises(AwaitingReview, match="1 of 2"):
        require_approval(state, given.now_s)


def test_two_people_pass_just_before_the_end_once_a_request_is_settled() -> None:
    given = read("passes")
    state = from_ledger(given.entries, given.request)
    verdict = assess_review(state, given.now_s)
    assert verdict.outcome is Outcome.PASS and not GatePolicy().stops(verdict)
    require_approval(state, given.now_s)
