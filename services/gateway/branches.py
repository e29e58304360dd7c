"""What a worker does for one branch: media → preprocessing → encoder → adapter → unit vector."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from services.fusion.mean import fuse_vectors
from services.gateway.executor import Checkpoint
from services.gateway.requests import PCM16, Content, Medium
from services.gateway.revision import LoadedBranch, LoadedEncoder, LoadedRevision
from services.preprocess.media import decode_pcm16
from validators.contracts.errors import BadInput, Unavailable
from validators.contracts.ports import Clock, Tensors

ObserveEngine = Callable[[str, float], None]
"""Encoder name and seconds of one engine call."""


@dataclass(frozen=True, slots=True)
class BranchResult:
    """`vector` float32 [D] of length 1, or None where nothing was recognised."""

    vector: npt.NDArray[np.float32] | None
    ms: float
    encoders: tuple[str, ...]
    transcript: str | None = None


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
        transcript = None
        used = [loaded.branch.encoder]
        if loaded.transcribe is not None:
            transcript = self._transcribe(loaded, media, checkpoint)
            used.append(str(loaded.branch.decoder))
            loaded = self.revision.branches[str(loaded.branch.then)]
            used.append(loaded.branch.encoder)
            media = [Medium("text/plain", transcript)] if transcript else []
        vector = self._embed(loaded, media, checkpoint) if media else None
        ms = (self.clock.monotonic_ns() - started_ns) / 1e6
        return BranchResult(vector, ms, tuple(used), transcript)

    def run_encoder(self, encoder: LoadedEncoder, feeds: Tensors) -> dict[str, npt.NDArray[Any]]:
        """One engine call, timed."""
        started_ns = self.clock.monotonic_ns()
        outputs = encoder.engine.run(feeds)
        elapsed_s = (self.clock.monotonic_ns() - started_ns) / 1e9
        self.observe(encoder.contract.name, elapsed_s)
        return outputs

    def _embed(
        self, loaded: LoadedBranch, media: Sequence[Medium], checkpoint: Checkpoint
    ) -> npt.NDArray[np.float32]:
        adapter, entry = loaded.adapter, loaded.branch.adapter
        assert adapter is not None and entry is not None  # noqa: S101 - held by load_revision
        vectors = []
        for medium in media:
            features = self._encode(loaded.branch.encoder, medium, checkpoint)[entry.output]
            with _blaming_engine(loaded.branch.encoder):
                vectors.append(adapter(features)[0])
        return fuse_vectors(vectors, [1.0] * len(vectors))

    def _transcribe(
        self, loaded: LoadedBranch, media: Sequence[Medium], checkpoint: Checkpoint
    ) -> str:
        transcribe = loaded.transcribe
        assert transcribe is not None  # noqa: S101 - the caller looked
        decoder = str(loaded.branch.decoder)
        texts = []
        for medium in media:
            features = self._encode(loaded.branch.encoder, medium, checkpoint)
            started_ns = self.clock.monotonic_ns()
            with _blaming_engine(decoder):
                texts.append(transcribe(features, checkpoint.require_time).strip())
            self.observe(decoder, (self.clock.monotonic_ns() - started_ns) / 1e9)
        return " ".join(text for text in texts if text)

    def _encode(
        self, name: str, medium: Medium, checkpoint: Checkpoint
    ) -> dict[str, npt.NDArray[Any]]:
        checkpoint.require_time()
        encoder = self.revision.encoders[name]
        assert encoder.preprocess is not None  # noqa: S101 - a branch's encoder has one
        feeds = encoder.preprocess(_decode(medium))
        checkpoint.require_time()
        return self.run_encoder(encoder, feeds)


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
