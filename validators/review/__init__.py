"""Reviews: who may let a bundle through, as rules over a value. No registry, no clock.

state    what a review is about and what was decided in it
rules    why a decision is not accepted, and what a review still lacks
ledger   decisions as ledger entries, and a review rebuilt from them
verdict  the gate's answer
"""

from validators.review.ledger import details_of, from_ledger
from validators.review.rules import Standing, approve, reject, request_changes, standing, status
from validators.review.state import (
    Action,
    ReviewDecision,
    ReviewRequest,
    ReviewState,
    ReviewStatus,
)
from validators.review.verdict import assess_review, require_approval

__all__ = [
    "Action",
    "ReviewDecision",
    "ReviewRequest",
    "ReviewState",
    "ReviewStatus",
    "Standing",
    "approve",
    "assess_review",
    "details_of",
    "from_ledger",
    "reject",
    "request_changes",
    "require_approval",
    "standing",
    "status",
]
