"""What comes in and what goes out, free of any transport."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from services.gateway.identifiers import check_identifier
from services.gateway.origins import ExpectedOrigin
from validators.contracts.origin import VectorOrigin

Content = bytes | str | npt.NDArray[np.float32]

PCM16 = "audio/l16"
"""Raw 16-bit little-endian mono samples at 16 kHz."""


@dataclass(frozen=True, slots=True)
class Medium:
    """One object of a request: encoded bytes, a text, or float samples, and its IANA type."""

    media_type: str
    content: Content

    @property
    def size_bytes(self) -> int:
        content = self.content
        return content.nbytes if isinstance(content, np.ndarray) else len(content)


@dataclass(frozen=True, slots=True)
class Call:
    """What every request has: who asked, when it arrived, how long it may take.

    `timeout_ms` None: by the service's SLO. The deadline is fixed from `arrived_ns` (monotonic).
    `origins`: what the caller's stored vectors come from, where it insists on that.
    `probe`: the platform's own request, by the mark of `validators/rollout/probe.py`.
    """

    request_id: str
    arrived_ns: int
    timeout_ms: float | None = None
    session_id: str | None = None
    origins: tuple[ExpectedOrigin, ...] = ()
    probe: bool = False

    @property
    def routing_key(self) -> str:
        """A session stays on one revision; without one each request is routed by itself."""
        return self.session_id or self.request_id

    def renamed(self, request_id: str | None, session_id: object) -> Call:
        """The call under the ids that its message names, where it names any. Raises BadInput."""
        session = session_id if isinstance(session_id, str) else None
        return dataclasses.replace(
            self,
            request_id=check_identifier(request_id) or self.request_id,
            session_id=check_identifier(session) or self.session_id,
        )


@dataclass(frozen=True, slots=True)
class MultimodalRequest:
    """Media by modality, in the order sent, and metadata that is passed through unread."""

    media: tuple[tuple[str, tuple[Medium, ...]], ...]
    metadata: tuple[tuple[str, str], ...] = ()

    @property
    def modalities(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.media)


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the catalogue, with its cosine to the request."""

    id: str
    caption: str
    score: float


@dataclass(frozen=True, slots=True)
class BranchReport:
    """`status`: used, missing (not sent), late (not there when the answer was made), failed.

    `reason` says what of the input was left out, where something was.
    """

    status: str
    ms: float | None = None
    reason: str | None = None

    def document(self) -> dict[str, Any]:
        told = {"status": self.status, "ms": self.ms}
        return told if self.reason is None else {**told, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Answer:
    """What the pipeline says. Exactly one of `items` (retrieval) and `embedding` is filled."""

    request_id: str
    session_id: str | None
    revision: str
    branches: dict[str, BranchReport]
    degraded: bool
    origins: Mapping[str, VectorOrigin] = field(default_factory=dict)  # by encoder
    items: tuple[Item, ...] = ()
    embedding: npt.NDArray[np.float32] | None = None
    transcript: str | None = None

    @property
    def encoders(self) -> dict[str, str]:
        """Fingerprint of each encoder version that took part."""
        return {name: origin.encoder for name, origin in self.origins.items()}

    @property
    def engines(self) -> dict[str, str]:
        """Digest of each engine that ran."""
        return {name: origin.engine for name, origin in self.origins.items()}

    def document(self) -> dict[str, Any]:
        """The JSON answer."""
        document: dict[str, Any] = {
            "request_id": self.request_id,
            "session_id": self.session_id,
            "revision": self.revision,
            "items": [
                {"id": item.id, "caption": item.caption, "score": item.score} for item in self.items
            ],
            "branches": {name: report.document() for name, report in self.branches.items()},
            "degraded": self.degraded,
            "encoders": self.encoders,
            "engines": self.engines,
        }
        if self.embedding is not None:
            document["embedding"] = self.embedding.tolist()
        if self.transcript is not None:
            document["transcript"] = self.transcript
        return document
