"""Ed25519 keys in PEM files: one private key that signs, a folder of public keys that are trusted.

A key's id is the digest of its 32 public bytes (RFC 8032), so a name cannot point at another key.
A private key that others can read, or a trusted key that others can change, is refused.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from infra import files
from validators.contracts.digest import Digest, digest_bytes, short
from validators.contracts.errors import NotFound, Refused
from validators.contracts.ports import Signature

ALGORITHM = "Ed25519"
MAX_KEY_BYTES = 16 * 1024
MAX_TRUSTED_KEYS = 1000

_MODIFIABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ANY_ACCESS_BY_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class FileSigner:
    """The `Signer` port with a private key from a file."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self._key_id = key_id_of(key.public_key())

    @classmethod
    def create_or_open(cls, path: Path) -> FileSigner:
        """The key at `path`, made there (0600) if there is none; processes that race get one key.

        Raises:
            Refused: others can read it, or it is not an Ed25519 private key.
            Unavailable: the folder cannot be written.
        """
        with files.disk_faults("the key file", str(path), _WRITABLE):
            if not path.exists():
                _create(path)
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> FileSigner:
        """The key at `path`. Raises NotFound, and Refused as `create_or_open` does."""
        data = _read(path, _ANY_ACCESS_BY_OTHERS, f"Run: chmod 600 {path}")
        try:
            key = serialization.load_pem_private_key(data, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise _not_a_key(path, "private") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise _not_a_key(path, "private")
        return cls(key)

    @property
    def key_id(self) -> str:
        return self._key_id

    def sign(self, payload: bytes) -> Signature:
        value = base64.b64encode(self._key.sign(payload)).decode("ascii")
        return Signature(key_id=self._key_id, algorithm=ALGORITHM, value=value)

    def public_pem(self) -> bytes:
        """The public key, to be given to whoever verifies."""
        return self._key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def publish(self, folder: Path) -> Path:
        """Put the public key among the trusted ones of a folder; doing so again changes nothing."""
        path = folder / f"{short(self._key_id)}.pem"
        with files.disk_faults("the folder of trusted keys", str(folder), _WRITABLE):
            files.make_private_folder(folder)
            if not (path.is_file() and path.read_bytes() == self.public_pem()):
                files.write_atomically(path, self.public_pem())
        return path


class TrustedKeys:
    """The `Verifier` port over a set of public keys."""

    def __init__(self, keys: Iterable[Ed25519PublicKey]) -> None:
        self._keys = {key_id_of(key): key for key in keys}

    @property
    def key_ids(self) -> frozenset[str]:
        return frozenset(self._keys)

    def verify(self, payload: bytes, signature: Signature) -> None:
        if signature.algorithm != ALGORITHM:
            raise _untrusted(signature, f"it uses {signature.algorithm[:40]!r}, not {ALGORITHM}")
        key = self._keys.get(Digest(signature.key_id))
        if key is None:
            raise _untrusted(signature, "its key is not among the trusted ones")
        try:
            key.verify(base64.b64decode(signature.value, validate=True), payload)
        except (InvalidSignature, binascii.Error, ValueError) as error:
            raise _untrusted(signature, "it is not over these bytes") from error


def open_verifier(path: Path) -> TrustedKeys:
    """The trusted keys in a PEM file, or in every `*.pem` of a folder.

    Raises:
        NotFound: nothing is there.
        Refused: no key, too many, one that others can change, or one that is not Ed25519's.
    """
    if not path.is_dir():
        return TrustedKeys([_public_key(path)])
    _require_mode(path, path.stat(), _MODIFIABLE_BY_OTHERS, f"Run: chmod go-w {path}")
    found = sorted(path.glob("*.pem"))
    if not 0 < len(found) <= MAX_TRUSTED_KEYS:
        raise Refused(
            f"there are {len(found)} trusted keys, and 1 to {MAX_TRUSTED_KEYS} are expected",
            where=str(path),
            remedy="Put the public key (PEM) of each trusted signer there.",
        )
    return TrustedKeys(_public_key(item) for item in found)


def key_id_of(key: Ed25519PublicKey) -> Digest:
    """The digest of the raw public key."""
    return digest_bytes(key.public_bytes_raw())


def _create(path: Path) -> None:
    """Make a new key file, unless another process was first."""
    pem = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    files.make_private_folder(path.parent)
    files.sweep(path.parent, path.name)
    with files.stage(path.parent, path.name) as staged:
        staged.write(pem)
        staged.publish_new(path)


def _public_key(path: Path) -> Ed25519PublicKey:
    data = _read(path, _MODIFIABLE_BY_OTHERS, f"Run: chmod go-w {path}")
    try:
        key = serialization.load_pem_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _not_a_key(path, "public") from error
    if not isinstance(key, Ed25519PublicKey):
        raise _not_a_key(path, "public")
    return key


def _read(path: Path, forbidden: int, remedy: str) -> bytes:
    """The bytes of a key file, judged through the handle they are read from."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise NotFound(
            "there is no key file", where=str(path), remedy="Name an existing key file."
        ) from error
    except OSError as error:
        raise files.disk_fault(error, "the key file", str(path), _READABLE) from error
    with os.fdopen(handle, "rb") as stream:
        found = os.fstat(stream.fileno())
        _require_mode(path, found, forbidden, remedy)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_KEY_BYTES:
            raise _not_a_key(path, "PEM")
        return stream.read(MAX_KEY_BYTES)


def _require_mode(path: Path, found: os.stat_result, forbidden: int, remedy: str) -> None:
    if found.st_uid not in {os.geteuid(), 0}:
        raise Refused(
            "the key belongs to another user",
            where=str(path),
            remedy="Make a key of your own, or have its owner hand this one over.",
        )
    mode = stat.S_IMODE(found.st_mode)
    if mode & forbidden:
        raise Refused(
            f"other users have access to the key (mode {mode:04o})",
            where=str(path),
            remedy=f"{remedy} (and make a new key if it may have been read or changed).",
        )


def _not_a_key(path: Path, kind: str) -> Refused:
    return Refused(
        f"the file does not hold an Ed25519 {kind} key",
        where=str(path),
        remedy="Move the file away and make the key again, or restore it from its backup.",
    )


def _untrusted(signature: Signature, reason: str) -> Refused:
    return Refused(
        f"the signature cannot be trusted: {reason}",
        where=f"key {short(signature.key_id)[:12]}",
        remedy="Take the artefact from a trusted builder, or add its builder's public key to the "
        "trusted ones.",
    )


_WRITABLE = "Choose a folder that this user may write."
_READABLE = "Choose a file that this user may read."
