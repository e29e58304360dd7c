"""Where a vector comes from: it travels with every vector, and what does not fit never mixes.

Embeddings of two encoder versions often have one dimension, so that nothing but their origin tells
them apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import combinations

from validators.contracts.digest import Digest, short
from validators.contracts.engine import EngineManifest, EngineState
from validators.contracts.errors import Refused


@dataclass(frozen=True, slots=True)
class VectorOrigin:
    """The encoder version that made a vector, and the compiled engine that ran it."""

    encoder: Digest  # fingerprint: model bytes, contract, preprocessing
    engine: Digest  # of the compiled bytes

    def describe(self) -> str:
        return f"encoder {short(self.encoder)}, engine {short(self.engine)}"


def may_mix(
    one: VectorOrigin, other: VectorOrigin, siblings: Collection[frozenset[Digest]] = ()
) -> bool:
    """Whether vectors of these origins may be compared, cached or stored together.

    `siblings` are pairs of engines of one encoder version that were measured against each other, or
    both against the source model, and passed parity.
    """
    if one.encoder != other.encoder:
        return False
    return one.engine == other.engine or frozenset((one.engine, other.engine)) in siblings


def require_mix(
    one: VectorOrigin,
    other: VectorOrigin,
    siblings: Collection[frozenset[Digest]] = (),
    *,
    where: str,
) -> None:
    """Raise Refused where vectors of these origins must not meet."""
    if may_mix(one, other, siblings):
        return
    same_encoder = one.encoder == other.encoder
    raise Refused(
        "vectors of two engines that were never compared would mix"
        if same_encoder
        else "vectors of two encoder versions would mix",
        where=f"{where}: {one.describe()} and {other.describe()}",
        remedy="Verify both engines against the source model, then try again."
        if same_encoder
        else "Encode the stored vectors again with the present version, or ask the version that "
        "made them.",
    )


def siblings_of(engines: Iterable[EngineManifest]) -> frozenset[frozenset[Digest]]:
    """The pairs of these engines whose vectors may mix.

    Both were compiled from one ONNX file for one encoder, and both are VERIFIED: each was compared
    with that source on every profile corner and passed parity. Nothing less makes them siblings.
    """
    verified = [item for item in engines if item.state is EngineState.VERIFIED]
    return frozenset(
        frozenset((one.engine, other.engine))
        for one, other in combinations(verified, 2)
        if (one.spec.encoder, one.source) == (other.spec.encoder, other.source)
    )
