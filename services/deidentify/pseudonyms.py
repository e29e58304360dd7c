"""The key of a release, and what is derived from it.

Everything is HMAC-SHA3-256 under one secret key and one scope: without the key a pseudonym cannot
be recomputed from a guessed name (an unsalted hash of a name can), in another scope the same name
has another pseudonym, and with the same key and scope the same data gives the same release.
"""

from __future__ import annotations

import hashlib
import hmac
import unicodedata
import uuid
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from validators.contracts.errors import BadInput

MINIMUM_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class ReleaseKey:
    """A secret and the scope in which its pseudonyms may be linked (a service, a year, a study).

    Rotating the secret or changing the scope cuts the link to earlier releases.
    """

    secret: bytes = field(repr=False)
    scope: str

    def __post_init__(self) -> None:
        if len(self.secret) < MINIMUM_KEY_BYTES or not self.scope:
            raise BadInput(
                f"a release key needs {MINIMUM_KEY_BYTES} secret bytes and a scope",
                where="release key",
                remedy="Make one with secrets.token_bytes(32) and keep it out of the data.",
            )

    @property
    def key_id(self) -> str:
        """Names the key and scope without revealing either: 16 hex digits."""
        return self.derive("key-id")[:8].hex()

    def derive(self, purpose: str, *parts: bytes) -> bytes:
        """32 bytes for one purpose and message, unlinkable between purposes."""
        message = b"".join(
            len(part).to_bytes(8, "big") + part
            for part in (self.scope.encode(), purpose.encode(), *parts)
        )
        return hmac.new(self.secret, message, hashlib.sha3_256).digest()


def pseudonym(key: ReleaseKey, kind: str, value: str) -> str:
    """A version 4 UUID (RFC 9562) that stands for this value of this kind within the key's scope.

    Case, width and spacing of the value do not matter: "EILEEN  COLLINS" is "Eileen Collins".
    """
    plain = " ".join(unicodedata.normalize("NFKC", value).casefold().split())
    return str(
        uuid.UUID(bytes=key.derive("pseudonym", kind.encode(), plain.encode())[:16], version=4)
    )


def keyed_order(key: ReleaseKey, count: int, *context: bytes) -> npt.NDArray[np.intp]:
    """A permutation [count] that only the key's holder can repeat.

    Each place draws 64 bits of a SHAKE-256 stream and is sorted by them.
    """
    stream = hashlib.shake_256(key.derive("permutation", *context)).digest(8 * count)
    return np.argsort(np.frombuffer(stream, dtype="<u8"), kind="stable")
