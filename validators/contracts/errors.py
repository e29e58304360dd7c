"""The errors every layer speaks, each mapped once at the edge (HTTP, gRPC, exit code).

ModalgateError
├── BadInput              the caller's file, request or setting is wrong
│   ├── TooLarge          over a declared bound
│   ├── Unsupported       a combination that no pipeline here serves
│   └── NotFound          a named thing that does not exist
├── Blocked               a gate said FAIL
├── Undecided             a gate said INCONCLUSIVE or ERROR
├── AwaitingReview        people have to decide first
├── RolledBack            the canary gave the traffic back
├── Conflict              somebody else moved it first (compare-and-set, locks)
├── Refused               integrity: a signature, digest, host or version does not match
├── Unavailable           a dependency or piece of hardware is missing or down
│   └── DiskFull          no room to write
├── Overloaded            no room in a bounded queue; try again later
└── DeadlineExceeded      the deadline fixed at arrival has passed

Messages never hold a PII value or a secret: they name the thing by its id.
"""

from __future__ import annotations


class ModalgateError(Exception):
    """What happened, to which thing, and what to do next.

    Attributes:
        what: one sentence, without a trailing period.
        where: the file, field, tensor, engine or sample, by its id.
        remedy: an imperative sentence.
        retry_after_s: seconds after which trying again can help, where that is known.
        attachment: what had been done and found before it happened, for the JSON document.
    """

    def __init__(
        self, what: str, *, where: str = "", remedy: str = "", retry_after_s: float | None = None
    ) -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        self.retry_after_s = retry_after_s
        self.attachment: dict[str, object] = {}
        place = f" ({where})" if where else ""
        advice = f". {remedy}" if remedy else ""
        super().__init__(f"{what}{place}{advice}")

    def document(self) -> dict[str, str]:
        """The `error` object of every JSON answer."""
        return {"what": self.what, "where": self.where, "remedy": self.remedy}


class BadInput(ModalgateError):
    """The caller's file, request or setting is wrong."""


class TooLarge(BadInput):
    """Over a declared bound."""


class Unsupported(BadInput):
    """A combination of modalities, tensors or options that nothing here serves."""


class NotFound(BadInput):
    """A named thing that does not exist."""


class Blocked(ModalgateError):
    """A gate said FAIL."""


class Undecided(ModalgateError):
    """A gate said INCONCLUSIVE or ERROR: it could not measure, so it may not pass."""


class AwaitingReview(ModalgateError):
    """People have to decide first."""


class RolledBack(ModalgateError):
    """The canary gave the traffic back to the known-good revision."""


class Conflict(ModalgateError):
    """Somebody else moved it first."""


class Refused(ModalgateError):
    """A signature, digest, host, version or identity does not match what was promised."""


class Unavailable(ModalgateError):
    """A dependency or a piece of hardware is missing or down."""


class DiskFull(Unavailable):
    """A disk is full, over its quota, or too full to begin."""


class Overloaded(ModalgateError):
    """No room in a bounded queue."""


class DeadlineExceeded(ModalgateError):
    """The deadline fixed at arrival has passed."""
