"""Which encoder version vectors come from, as requests and answers say it.

As text an origin is `<encoder fingerprint>/<engine digest>`; the engine may be left out by who
insists on the encoder version alone. Several are written `image=<origin>,text=<origin>`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def origins_of_headers(values: Sequence[object]) -> tuple[ExpectedOrigin, ...]:
    """What the headers of this name insist on; () where there is none.

    Raises:
        BadInput: one that cannot be read, or a second one: neither may be dropped.
    """
    if len(values) > 1:
        raise BadInput(
            "the header is there more than once", where=HEADER,
            remedy="Send one, with commas between several origins.",
        )  # fmt: skip
    return parse_origins(values[0]) if values else ()


def origins_of_parameters(parameters: Mapping[str, object]) -> tuple[ExpectedOrigin, ...]:
    """What a request's parameters insist on; () where none of them is about origins.

    Raises:
        BadInput: one that cannot be read, whatever it is: it may not be dropped.
    """
    return parse_origins(parameters[PARAMETER]) if PARAMETER in parameters else ()


def parse_origins(text: object) -> tuple[ExpectedOrigin, ...]:
    """What a header or parameter that is there insists on: one origin at least.

    Raises:
        BadInput: it is no text, an empty one, too long, or an origin in it cannot be read.
    """
    if not isinstance(text, str) or len(text) > _MAX_TEXT or text.count(",") >= _MAX_ENTRIES:
        raise unreadable_origin()
    return tuple(_parse(part.strip()) for part in text.split(","))


def told_origins(origins: Mapping[str, VectorOrigin]) -> dict[str, str]:
    """The parameters of a response whose vectors come from several encoders."""
    return {
        ENCODER: ",".join(f"{name}={origin.encoder}" for name, origin in origins.items()),
        ENGINE: ",".join(f"{name}={origin.engine}" for name, origin in origins.items()),
    }


def _parse(part: str) -> ExpectedOrigin:
    name, named, origin = part.rpartition("=")
    encoder, with_engine, engine = origin.partition("/")
    try:
        return ExpectedOrigin(
            name if named else None,
            require_digest(encoder),
            require_digest(engine) if with_engine else None,
        )
    except BadInput as error:
        raise unreadable_origin() from error


def unreadable_origin() -> BadInput:
    """The error of what is no origin."""
    return BadInput(
        "the origin cannot be read", where=HEADER,
        remedy="Write <encoder fingerprint>, or <encoder name>=<fingerprint>/<engine digest>, with "
        "commas between several.",
    )  # fmt: skip
