"""The ports: what the platform asks of the outside world. infra implements, flows wire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy.typing as npt

from validators.contracts.deployment import DeploymentStatus, Revision, RevisionStats
from validators.contracts.digest import Digest
from validators.contracts.engine import EngineManifest

Tensors = Mapping[str, npt.NDArray[Any]]
"""Named tensors, as the Open Inference Protocol names them."""


class Clock(Protocol):
    """Monotonic time for deadlines, wall time for records only."""

    def monotonic_ns(self) -> int: ...
    def wall_ns(self) -> int: ...


class ObjectStore(Protocol):
    """Content-addressed objects, and named references moved by compare-and-set.

    An object is written once and never changes; a write is whole or absent, whatever dies.
    """

    def put(self, data: bytes) -> Digest:
        """Store bytes; storing what is there already does nothing.

        Raises:
            Unavailable: the store is down or its disk is full; nothing partial stays.
        """
        ...

    def put_file(self, path: Path) -> Digest:
        """Store a file without holding it in memory."""
        ...

    def get(self, digest: Digest) -> bytes:
        """The object's bytes, checked against its name.

        Raises:
            NotFound: no such object.  Refused: the stored bytes no longer match.
            Unavailable: the store is down.
        """
        ...

    def open(self, digest: Digest) -> BinaryIO:
        """A read-only stream of the object (not checked: the caller digests what it reads)."""
        ...

    def fetch(self, digest: Digest, destination: Path) -> None:
        """Write the object to a file, checked, atomically."""
        ...

    def contains(self, digest: Digest) -> bool: ...

    def delete(self, digest: Digest) -> None:
        """Remove an object; removing what is absent does nothing."""
        ...

    def objects(self) -> Iterator[Digest]: ...

    def reference(self, name: str) -> Digest | None:
        """What the reference points to, or None."""
        ...

    def set_reference(self, name: str, to: Digest, *, expected: Digest | None) -> None:
        """Point `name` at `to` if it now points at `expected` (None: if it does not exist).

        Raises:
            Conflict: somebody moved it first.
        """
        ...

    def delete_reference(self, name: str) -> None: ...

    def references(self, prefix: str = "") -> Iterator[str]: ...


@dataclass(frozen=True, slots=True)
class Signature:
    """A detached Ed25519 signature, base64."""

    key_id: str
    algorithm: str
    value: str


class Signer(Protocol):
    @property
    def key_id(self) -> str: ...
    def sign(self, payload: bytes) -> Signature: ...


class Verifier(Protocol):
    def verify(self, payload: bytes, signature: Signature) -> None:
        """Raises Refused where the signature is not by a trusted key over this payload."""
        ...


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """A registered release. `version` is the registry's own number, as text."""

    model: str
    version: str
    bundle: Digest
    created_ms: int
    tags: Mapping[str, str]
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """Who did what to which version, when and why. `previous` chains the entries."""

    sequence: int
    at_ms: int
    actor: str
    action: str  # "approve", "reject", "move-alias", "deploy", "roll-back", ...
    model: str
    version: str
    reason: str
    details: tuple[tuple[str, str], ...]
    previous: Digest
    digest: Digest


class Ledger(Protocol):
    """Append-only and hash-chained."""

    def append(
        self, *, actor: str, action: str, model: str, version: str, reason: str,
        details: Mapping[str, str] | None = None,
    ) -> LedgerEntry: ...  # fmt: skip

    def entries(self, model: str | None = None) -> Sequence[LedgerEntry]: ...

    def verify(self) -> int:
        """The number of entries; raises Refused at the first one whose chain does not hold."""
        ...


class Registry(Protocol):
    """Model versions with evidence, tags and aliases."""

    def register(
        self,
        model: str,
        bundle: Digest,
        *,
        evidence: Mapping[str, bytes],
        tags: Mapping[str, str],
    ) -> ModelVersion:
        """Register a bundle; registering the same bundle again returns the same version.

        A crash in the middle leaves nothing that the next call does not finish or remove.
        """
        ...  # fmt: skip

    def versions(self, model: str) -> Sequence[ModelVersion]: ...
    def version(self, model: str, version: str) -> ModelVersion: ...
    def set_tags(self, model: str, version: str, tags: Mapping[str, str]) -> None: ...
    def alias(self, model: str, alias: str) -> ModelVersion | None: ...

    def move_alias(
        self,
        model: str,
        alias: str,
        to: str | None,
        *,
        expected: str | None,
        actor: str,
        reason: str,
    ) -> None:
        """Move (or with None remove) an alias that points at `expected`; the ledger records it.

        Raises:
            Conflict: it points elsewhere.
        """
        ...  # fmt: skip

    def evidence(self, model: str, version: str) -> Mapping[str, bytes]: ...


class DeploymentTarget(Protocol):
    """A place that serves revisions: processes on this machine, or KServe."""

    @property
    def name(self) -> str: ...

    def apply(self, revision: Revision) -> DeploymentStatus:
        """Bring a revision up beside what serves: the first takes all traffic, a later one none.

        Returns when the revision is ready. Applying what is there already does nothing.
        """
        ...

    def status(self, service: str) -> DeploymentStatus: ...
    def set_canary(self, service: str, percent: int) -> DeploymentStatus: ...
    def promote(self, service: str) -> DeploymentStatus: ...
    def roll_back(self, service: str, reason: str) -> DeploymentStatus: ...
    def stats(self, service: str) -> Sequence[RevisionStats]: ...
    def mark_probe(self, service: str, body: bytes) -> str:
        """What tells the service that a request with this body is the platform's own."""
        ...

    def stop(self, service: str, *, forget: bool = False) -> None:
        """End a service. Its stable revision stays pinned, unless told to `forget` it.

        What was never known to be good has to be forgotten, or the next revision would be compared
        with it.
        """
        ...


class RunningEngine(Protocol):
    """A loaded engine. `run` may be called from several threads at once."""

    @property
    def manifest(self) -> EngineManifest: ...

    def run(self, feeds: Tensors) -> dict[str, npt.NDArray[Any]]:
        """All outputs by name, copied: they outlive the request.

        Raises:
            BadInput: a missing, misnamed or mistyped input, or shapes outside every profile.
        """
        ...

    def close(self) -> None: ...
