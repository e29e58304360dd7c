"""Each error of the tree and its exit code, in one table."""

from __future__ import annotations

from validators.contracts import errors

DONE = 0
FAILED = 1
BAD_INPUT = 2
BLOCKED = 3
AWAITING_REVIEW = 4
ROLLED_BACK = 5
UNDECIDED = 6

EXIT_CODES: dict[type[errors.ModalgateError], int] = {
    errors.ModalgateError: FAILED,
    errors.BadInput: BAD_INPUT,
    errors.TooLarge: BAD_INPUT,
    errors.Unsupported: BAD_INPUT,
    errors.NotFound: BAD_INPUT,
    errors.Blocked: BLOCKED,
    errors.Undecided: UNDECIDED,
    errors.AwaitingReview: AWAITING_REVIEW,
    errors.RolledBack: ROLLED_BACK,
    errors.Conflict: FAILED,
    errors.Refused: FAILED,
    errors.Unavailable: FAILED,
    errors.DiskFull: FAILED,
    errors.Overloaded: FAILED,
    errors.DeadlineExceeded: FAILED,
}

STATUSES: dict[int, str] = {
    DONE: "done",
    FAILED: "failed",
    BAD_INPUT: "bad-input",
    BLOCKED: "blocked",
    AWAITING_REVIEW: "awaiting-review",
    ROLLED_BACK: "rolled-back",
    UNDECIDED: "undecided",
}
"""The `status` of the JSON document that goes with each exit code."""


def exit_code(error: errors.ModalgateError) -> int:
    """The code of the error's own class, or of its nearest ancestor."""
    for kind in type(error).__mro__:
        if kind in EXIT_CODES:
            return EXIT_CODES[kind]
    return FAILED
