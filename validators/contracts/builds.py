"""Requests for shapes that no loaded profile covers, and the queue they wait in.

A gateway files them, a flow builds what they ask for in the background, and the new engine takes
the place of the old one while that one still serves.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from validators.contracts.digest import Digest, digest_value


@dataclass(frozen=True, slots=True)
class ShapeRequest:
    """A shape that a serving engine did not cover.

    `sizes` are the named dimensions in the contract's order, rounded up by whoever files it, so
    that neighbouring shapes make one request.
    """

    service: str
    bundle: Digest
    encoder: str
    engine_key: Digest  # of the engine that did not cover it
    sizes: tuple[tuple[str, int], ...]

    @property
    def key(self) -> Digest:
        return digest_value("shape-request", self)


class BuildState(enum.Enum):
    WAITING = "waiting"
    BUILDING = "building"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class QueuedBuild:
    """A request and what has become of it. `message` says why it failed, `tries` how often."""

    request: ShapeRequest
    state: BuildState
    filed_ms: int
    tries: int = 0
    message: str = ""


class BuildQueue(Protocol):
    """Requests, each once however often it is filed, by however many threads and processes."""

    def file(self, request: ShapeRequest) -> bool:
        """Queue a request. False where it is known already, whatever has become of it.

        Raises:
            Overloaded: too many wait.  Unavailable: the disk is full; nothing partial stays.
        """
        ...

    def builds(self, service: str | None = None) -> Sequence[QueuedBuild]:
        """What is known, oldest first."""
        ...

    def take(self) -> QueuedBuild | None:
        """The oldest that waits, now BUILDING, held until it is settled or this process dies."""
        ...

    def settle(
        self, request: ShapeRequest, state: BuildState, message: str = "", *, tried: bool = True
    ) -> None:
        """DONE, FAILED, or WAITING again to be tried again; not `tried`: this was no try."""
        ...

    def reopen(self, request: ShapeRequest) -> bool:
        """Let what is DONE or FAILED wait again, with all its tries. False where it is neither."""
        ...

    def forget(self, request: ShapeRequest) -> None: ...
