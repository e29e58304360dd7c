"""What a review is about, and what was decided in it."""

from __future__ import annotations

import enum
import unicodedata
from dataclasses import dataclass

from validators.contracts.digest import Digest
from validators.contracts.verdict import Outcome


class Action(enum.Enum):
    """The ledger's words for a decision."""

    APPROVE = "approve"
    REJECT = "reject"
    REQUEST_CHANGES = "request-changes"


class ReviewStatus(enum.Enum):
    AWAITING = "AWAITING"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """A bundle that asks to be let through.

    `gates` are the outcomes after waivers; `required_gates` have to be among them and below
    `stops_at`. `evidence` is the digest of the verdicts document. `expires_s` is wall time, seconds
    since the epoch: after it the review has to be asked for again.
    """

    model: str
    version: str
    bundle: Digest
    evidence: Digest
    author: str
    target: str
    gates: tuple[tuple[str, Outcome], ...]
    required_gates: tuple[str, ...]
    certificate: Digest | None
    required_people: int = 2
    unattended_allowed: bool = False
    expires_s: float | None = None
    stops_at: Outcome = Outcome.INCONCLUSIVE


@dataclass(frozen=True, slots=True)
class ReviewDecision:
    """One person's word on one bundle and its evidence. `at_s` is wall time."""

    actor: str
    action: Action
    bundle: Digest
    evidence: Digest
    reason: str
    at_s: float
    unattended: bool = False


@dataclass(frozen=True, slots=True)
class ReviewState:
    request: ReviewRequest
    decisions: tuple[ReviewDecision, ...] = ()


def person(name: str) -> str:
    """The name that two spellings of one person share: case, width and white space aside."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())
