"""Windows at rest: AES-256-GCM under a key of their own (NIST SP 800-38D).

    "MGW1" | 8 bytes of the key's digest | 12 bytes of nonce | ciphertext and tag

What is sealed is bound to its place: a file that was moved to another service or bundle, cut short
or changed does not open. Without the key nothing opens, so destroying it forgets all windows at
once, copies and backups among them.
"""

from __future__ import annotations

import hashlib
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from validators.contracts.errors import Refused

_MAGIC = b"MGW1"
_KEY_ID_BYTES, _NONCE_BYTES, _TAG_BYTES = 8, 12, 16
OVERHEAD_BYTES = len(_MAGIC) + _KEY_ID_BYTES + _NONCE_BYTES + _TAG_BYTES
_HEADER_BYTES = OVERHEAD_BYTES - _TAG_BYTES


def seal(key: bytes, place: str, data: bytes) -> bytes:
    """The sealed bytes, which open at this place only."""
    nonce = os.urandom(_NONCE_BYTES)
    header = _MAGIC + _key_id(key) + nonce
    return header + AESGCM(key).encrypt(nonce, data, header + place.encode())


def unseal(key: bytes, place: str, sealed: bytes) -> bytes:
    """What was sealed.

    Raises:
        Refused: damaged, cut short, moved, or sealed under another key.
    """
    header = sealed[:_HEADER_BYTES]
    if len(sealed) < OVERHEAD_BYTES or not header.startswith(_MAGIC):
        raise Refused("no sealed window", where=place, remedy="Remove it.")
    if header[len(_MAGIC) : len(_MAGIC) + _KEY_ID_BYTES] != _key_id(key):
        raise Refused(
            "the window was sealed under another key", where=place,
            remedy="Put the key back, or remove the window.",
        )  # fmt: skip
    try:
        body = sealed[_HEADER_BYTES:]
        return AESGCM(key).decrypt(header[-_NONCE_BYTES:], body, header + place.encode())
    except InvalidTag as error:
        raise Refused("the window was changed since", where=place, remedy="Remove it.") from error


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"modalgate-windows" + key).digest()[:_KEY_ID_BYTES]
