"""Which encoder version vectors come from, as requests and answers say it.

As text an origin is `<encoder fingerprint>/<engine digest>`; the engine may be left out by who
insists on the encoder version alone. Several are written `image=<origin>,text=<origin>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from validators.contracts.digest import Digest, require_digest
from validators.contracts.errors import BadInput
from validators.contracts.origin import VectorOrigin

HEADER = "x-modalgate-origin"
PARAMETER = "modalgate.origin"
ENCODER, ENGINE, DEGRADED = "modalgate.encoder", "modalgate.engine", "modalgate.degraded"
"""Parameters of an inference response: fingerprint, engine digest, what was left out."""

_MAX_TEXT = 8192
_MAX_ENTRIES = 32


@dataclass(frozen=True, slots=True)
class ExpectedOrigin:
    """What a caller insists on. `name` None: of the one encoder that is asked."""

    name: str | None
    encoder: Digest
    engine: Digest | None = None


def parse_origins(text: object) -> tuple[ExpectedOrigin, ...]:
    """What a header or parameter insists on; () where there is none. Raises BadInput."""
    if not text:
        return ()
    if not isinstance(text, str) or len(text) > _MAX_TEXT or text.count(",") >= _MAX_ENTRIES:
        raise _unreadable()
    return tuple(_parse(part.strip()) for part in text.split(","))


def told_origins(origins: Mapping[str, VectorOrigin]) -> dict[str, str]:
    """The parameters of a response whose vectors come from several encoders."""
    return {
        ENCODER: ",".join(f"{name}={origin.encoder}" for name, origin in origins.items()),
        ENGINE: ",".join(f"{name}={origin.engine}" for name, origin in origins.items()),
    }


def _parse(part: str) -> ExpectedOrigin:
    name, named, origin = part.rpartition("=")
    encoder, _, engine = origin.partition("/")
    try:
        return ExpectedOrigin(
            name if named else None,
            require_digest(encoder),
            require_digest(engine) if engine else None,
        )
    except BadInput as error:
        raise _unreadable() from error


def _unreadable() -> BadInput:
    return BadInput(
        "the origin cannot be read", where=HEADER,
        remedy="Write <encoder fingerprint>, or <encoder name>=<fingerprint>/<engine digest>, with "
        "commas between several.",
    )  # fmt: skip
