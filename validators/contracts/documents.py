"""From JSON documents back to the frozen values that wrote them.

`canonical_json` writes; `load` reads, strictly: unknown keys, missing keys and wrong types are
refused, so a document of another format never half-loads. (msgspec decodes into dataclasses,
tuples and enums by their annotations.)
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from validators.contracts.digest import canonical_json
from validators.contracts.errors import Refused

T = TypeVar("T")

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024


def load(kind: type[T], data: bytes, *, where: str = "") -> T:
    """The value of type `kind` that `data` holds.

    Raises:
        Refused: not JSON, not of this type, or larger than MAX_DOCUMENT_BYTES.
    """
    if len(data) > MAX_DOCUMENT_BYTES:
        raise Refused(f"a {kind.__name__} document of {len(data)} bytes is too large", where=where)
    try:
        value = msgspec.json.decode(data, type=kind, strict=True)
        # msgspec ignores keys that a dataclass does not have: what was read must write the same.
        if msgspec.json.decode(canonical_json(value)) != msgspec.json.decode(data):
            raise msgspec.ValidationError("it has keys that this version does not know")
        return value
    except msgspec.MsgspecError as error:
        raise Refused(
            f"not a {kind.__name__} document: {error}",
            where=where,
            remedy="It was written by another version or changed since: make it again.",
        ) from error
