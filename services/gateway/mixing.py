"""Vectors of two origins meet only where they may: those of a caller, and those of a catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.gateway.encoders import LoadedEncoder
from services.gateway.origins import HEADER, ExpectedOrigin
from validators.contracts.errors import BadInput, Conflict, Refused
from validators.contracts.origin import VectorOrigin, may_mix, require_mix
from validators.contracts.pipeline import Branch


class OriginMismatch(Conflict):
    """The caller's vectors come from another encoder version than the one that would answer."""


def require_origins(
    expected: Sequence[ExpectedOrigin], encoders: Mapping[str, LoadedEncoder], model: str | None
) -> None:
    """Raise OriginMismatch where an encoder's vectors would not mix with those of the caller.

    `model` is the encoder that the request names, where it names one.
    """
    for item in expected:
        name = item.name or model
        if name is None:
            raise BadInput(
                "the origin does not say of which encoder", where=HEADER,
                remedy="Write it as <encoder name>=<fingerprint>.",
            )  # fmt: skip
        encoder = encoders.get(name)
        if encoder is None:
            raise OriginMismatch(
                f"this revision has no encoder {name[:80]!r} to compare the origin with",
                where=HEADER,
                remedy=f"Name one of: {', '.join(encoders)}.",
            )
        now = encoder.origin
        stored = VectorOrigin(item.encoder, item.engine or now.engine)
        if not may_mix(stored, now, encoder.engine.siblings):
            raise OriginMismatch(
                f"the stored vectors come from another version of {name}",
                where=f"stored: {stored.describe()}; here: {now.describe()}",
                remedy="Encode the stored vectors again with this version, or ask the revision "
                "that made them by its name.",
            )


def require_catalogue(
    origins: Mapping[str, VectorOrigin],
    branches: Sequence[Branch],
    encoders: Mapping[str, LoadedEncoder],
) -> None:
    """Raise Refused where a catalogue's vectors must not meet those that requests will get.

    `origins` are by modality: of the items, and of the texts that their space was learned from.
    """
    for branch in branches:
        if branch.adapter is None:
            continue
        origin = origins.get(branch.modality)
        if origin is None:
            raise Refused(
                f"the catalogue does not say which encoder its space has for {branch.modality}",
                where="catalogue",
                remedy="Release again: a catalogue is made with the encoders of its release.",
            )
        encoder = encoders[branch.encoder]
        require_mix(
            origin, encoder.origin, encoder.engine.siblings,
            where=f"catalogue of {branch.modality}",
        )  # fmt: skip
