"""What a worker does for one branch: media → preprocessing → encoder → adapter → unit vector."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from services.engines.elastic.engine import Served
from services.fusion.mean import fuse_vectors
from services.gateway.encoders import LoadedEncoder
from services.gateway.executor import Checkpoint
from services.gateway.requests import PCM16, Content, Medium
from services.gateway.revision import LoadedBranch, LoadedRevision
from services.preprocess.media import decode_pcm16
from validators.contracts.errors import BadInput, Unavailable
from validators.contracts.origin import VectorOrigin
from validators.contracts.ports import Clock, Tensors

ObserveEngine = Callable[[str, float, Served | None], None]
"""Encoder name, seconds of one engine call, and how it was run (a decoder runs many steps)."""


@dataclass(frozen=True, slots=True)
class BranchResult:
    """`vector` float32 [D] of length 1, or None where nothing was recognised.

    `origins` are of the encoders that took part; `degraded` says what of the input was left out.
    `features` is what the branch's own encoder made of the first medium, before the adapter; a
    branch that goes on through text has none.
    """

    vector: npt.NDArray[np.float32] | None
    ms: float
    origins: Mapping[str, VectorOrigin]
    transcript: str | None = None
    degraded: str | None = None
    features: npt.NDArray[Any] | None = None


@dataclass(slots=True)
class _Trail:
    """What the encoders that a branch runs through leave behind."""

    origins: dict[str, VectorOrigin] = field(default_factory=dict)
    degraded: str | None = None
    features: npt.NDArray[Any] | None = None


@dataclass(frozen=True, slots=True)
class BranchRunner:
    """Runs branches of one revision, in whatever thread calls it."""

    revision: LoadedRevision
    clock: Clock
    observe: ObserveEngine

    def run(self, modality: str, media: Sequence[Medium], checkpoint: Checkpoint) -> BranchResult:
        """The branch's vector for its media (several are averaged).

        Raises:
            BadInput: a medium that cannot be read.  DeadlineExceeded: time is up.
        """
        started_ns = self.clock.monotonic_ns()
        loaded = self.revision.branches[modality]
        transcript, trail = None, _Trail()
        if loaded.transcribe is not None:
            transcript = self._transcribe(loaded, media, checkpoint, trail)
            loaded = self.revision.branches[str(loaded.branch.then)]
            media = [Medium("text/plain", transcript)] if transcript else []
        vector = self._embed(loaded, media, checkpoint, trail) if media else None
        ms = (self.clock.monotonic_ns() - started_ns) / 1e6
        features = None if transcript is not None else trail.features
        return BranchResult(vector, ms, trail.origins, transcript, trail.degraded, features)

    def run_encoder(self, encoder: LoadedEncoder, feeds: Tensors) -> Served:
        """One engine call, at any shape, timed."""
        started_ns = self.clock.monotonic_ns()
        served = encoder.engine.serve(feeds)
        elapsed_s = (self.clock.monotonic_ns() - started_ns) / 1e9
        self.observe(encoder.contract.name, elapsed_s, served)
        return served

    def _embed(
        self,
        loaded: LoadedBranch,
        media: Sequence[Medium],
        checkpoint: Checkpoint,
        trail: _Trail,
    ) -> npt.NDArray[np.float32]:
        adapter, entry = loaded.adapter, loaded.branch.adapter
        assert adapter is not None and entry is not None  # noqa: S101 - held by load_revision
        vectors = []
        for medium in media:
            outputs = self._encode(loaded.branch.encoder, medium, checkpoint, trail)
            features = outputs[entry.output]
            trail.features = features[0] if trail.features is None else trail.features
            with _blaming_engine(loaded.branch.encoder):
                vectors.append(adapter(features)[0])
        return fuse_vectors(vectors, [1.0] * len(vectors))

    def _transcribe(
        self,
        loaded: LoadedBranch,
        media: Sequence[Medium],
        checkpoint: Checkpoint,
        trail: _Trail,
    ) -> str:
        transcribe = loaded.transcribe
        assert transcribe is not None  # noqa: S101 - the caller looked
        decoder = str(loaded.branch.decoder)
        texts = []
        for medium in media:
            features = self._encode(loaded.branch.encoder, medium, checkpoint, trail)
            started_ns = self.clock.monotonic_ns()
            with _blaming_engine(decoder):
                texts.append(transcribe(features, checkpoint.require_time).strip())
            self.observe(decoder, (self.clock.monotonic_ns() - started_ns) / 1e9, None)
        trail.origins[decoder] = self.revision.encoders[decoder].origin
        return " ".join(text for text in texts if text)

    def _encode(
        self, name: str, medium: Medium, checkpoint: Checkpoint, trail: _Trail
    ) -> dict[str, npt.NDArray[Any]]:
        checkpoint.require_time()
        encoder = self.revision.encoders[name]
        assert encoder.preprocess is not None  # noqa: S101 - a branch's encoder has one
        feeds = encoder.preprocess(_decode(medium))
        checkpoint.require_time()
        served = self.run_encoder(encoder, feeds)
        trail.origins[name] = VectorOrigin(encoder.fingerprint, served.engine)
        trail.degraded = trail.degraded or served.degraded
        return served.outputs


@contextlib.contextmanager
def _blaming_engine(encoder: str) -> Iterator[None]:
    """What comes out of an engine is not the caller's doing, whatever it is."""
    try:
        yield
    except BadInput as error:
        raise Unavailable(f"the answer of {encoder} cannot be used: {error.what}") from error


def _decode(medium: Medium) -> Content:
    """Raw samples have no header of their own; everything else the preprocessor reads itself."""
    if medium.media_type == PCM16 and isinstance(medium.content, bytes):
        return decode_pcm16(medium.content)
    return medium.content
