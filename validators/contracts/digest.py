"""Identity is content: every durable thing is named by a digest of what made it.

A digest is written `sha256:<64 hex digits>`. Values are digested through one canonical JSON
form, under a *kind* that keeps an engine key from ever equalling a data set's digest.
Golden tests pin both definitions: changing them renames everything that was ever stored.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NewType

from validators.contracts.errors import BadInput

Digest = NewType("Digest", str)

_FORM = re.compile(r"sha256:[0-9a-f]{64}")


def digest_bytes(data: bytes | bytearray | memoryview) -> Digest:
    """Digest of the bytes themselves."""
    return Digest("sha256:" + hashlib.sha256(data).hexdigest())


def digest_chunks(chunks: Iterable[bytes]) -> Digest:
    """Digest of a stream, equal to `digest_bytes` of its concatenation."""
    hasher = hashlib.sha256()
    for chunk in chunks:
        hasher.update(chunk)
    return Digest("sha256:" + hasher.hexdigest())


def digest_value(kind: str, value: object) -> Digest:
    """Digest of a value (dataclass, mapping, sequence, enum, scalar) under a named kind."""
    return digest_bytes(canonical_json({"kind": kind, "value": value}))


def require_digest(text: str) -> Digest:
    """The text as a Digest, or BadInput when it is not one."""
    if not _FORM.fullmatch(text):
        raise BadInput(
            f"{text[:80]!r} is not a digest", remedy="Write it as sha256: and 64 hex digits."
        )
    return Digest(text)


def hex_of(digest: Digest) -> str:
    """The 64 hex digits without the algorithm's name, for file names."""
    return digest.removeprefix("sha256:")


def short(digest: str) -> str:
    """The first 12 hex digits: for people, never for lookups."""
    return digest.removeprefix("sha256:")[:12]


def plain(value: object) -> Any:
    """The value as JSON's own types: dataclasses as objects, enums by value, tuples as arrays."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return _finite(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {_key(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(
            (plain(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True)
        )
    raise BadInput(f"{type(value).__name__} has no canonical JSON form")


def canonical_json(value: object) -> bytes:
    """One byte string per value: sorted keys, no white space, UTF-8, finite numbers only."""
    return json.dumps(
        plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def _finite(value: float) -> float | int:
    """Whole numbers are written without a point, so that 300 and 300.0 are one value."""
    if value.is_integer() and abs(value) < 2**53:
        return int(value)
    if not math.isfinite(value):
        raise BadInput(
            "NaN and infinity have no canonical JSON form", remedy="Record them as text."
        )
    return value


def _key(key: object) -> str:
    if isinstance(key, enum.Enum):
        key = key.value
    if not isinstance(key, str):
        raise BadInput(f"an object key of type {type(key).__name__} has no canonical JSON form")
    return key
