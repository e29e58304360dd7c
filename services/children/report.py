"""What a child says before it leaves: a JSON document, never a pickle."""

from __future__ import annotations

from dataclasses import dataclass

from validators.contracts.engine import BuildPhase


@dataclass(frozen=True, slots=True)
class ErrorDocument:
    """A ModalgateError on its way from the child to its parent."""

    kind: str
    what: str
    where: str
    remedy: str


@dataclass(frozen=True, slots=True)
class ChildReport:
    """`answer` is the canonical JSON of what the task returned; empty where it returned nothing."""

    phases: tuple[BuildPhase, ...] = ()
    error: ErrorDocument | None = None
    answer: str = ""
