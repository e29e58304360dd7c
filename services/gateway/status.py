"""Each error, once, as an HTTP status, a gRPC code and the outcome that metrics count."""

from __future__ import annotations

from dataclasses import dataclass

from validators.contracts import errors


@dataclass(frozen=True, slots=True)
class Status:
    """`grpc` is the name of the code in grpc.StatusCode; `outcome` a metric label."""

    http: int
    grpc: str
    outcome: str


STATUSES: dict[type[errors.ModalgateError], Status] = {
    errors.ModalgateError: Status(500, "INTERNAL", "error"),
    errors.BadInput: Status(400, "INVALID_ARGUMENT", "bad_input"),
    errors.TooLarge: Status(413, "INVALID_ARGUMENT", "bad_input"),
    errors.Unsupported: Status(422, "INVALID_ARGUMENT", "bad_input"),
    errors.NotFound: Status(404, "NOT_FOUND", "bad_input"),
    errors.Blocked: Status(409, "FAILED_PRECONDITION", "error"),
    errors.Undecided: Status(409, "FAILED_PRECONDITION", "error"),
    errors.AwaitingReview: Status(409, "FAILED_PRECONDITION", "error"),
    errors.RolledBack: Status(409, "ABORTED", "error"),
    errors.Conflict: Status(409, "ABORTED", "error"),
    errors.Refused: Status(403, "PERMISSION_DENIED", "error"),
    errors.Unavailable: Status(503, "UNAVAILABLE", "error"),
    errors.DiskFull: Status(503, "UNAVAILABLE", "error"),
    errors.Overloaded: Status(429, "RESOURCE_EXHAUSTED", "overloaded"),
    errors.DeadlineExceeded: Status(504, "DEADLINE_EXCEEDED", "expired"),
}


def status_of(error: errors.ModalgateError) -> Status:
    """The status of the error's own class, or of the nearest ancestor."""
    for kind in type(error).__mro__:
        if kind in STATUSES:
            return STATUSES[kind]
    return STATUSES[errors.ModalgateError]
