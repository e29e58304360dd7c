"""Names of references: what may be one, the same in every store.

A reference's name is a path of segments: `builds/<hex>`, `services/storefront/champion`.
"""

from __future__ import annotations

import re

from validators.contracts.errors import BadInput

MAX_NAME_CHARACTERS = 200

_SEGMENT = r"[A-Za-z0-9_:@=+.-]+"
_NAME = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT})*")
_PREFIX = re.compile(r"[A-Za-z0-9_:@=+./-]*")

_REMEDY = (
    f"Use at most {MAX_NAME_CHARACTERS} letters, digits and any of _ : @ = + . - in segments "
    "between single slashes; no segment may be . or .."
)


def require_reference_name(name: str) -> str:
    """The name itself, or BadInput: nothing that could leave the store or hide in it."""
    well_formed = len(name) <= MAX_NAME_CHARACTERS and _NAME.fullmatch(name)
    if not well_formed or any(part in {".", ".."} for part in name.split("/")):
        raise BadInput(f"{name[:80]!r} cannot name a reference", remedy=_REMEDY)
    return name


def require_reference_prefix(prefix: str) -> str:
    """The beginning of a name, perhaps empty, or BadInput."""
    well_formed = len(prefix) <= MAX_NAME_CHARACTERS and _PREFIX.fullmatch(prefix)
    if not well_formed or any(part in {".", ".."} for part in prefix.split("/")):
        raise BadInput(f"{prefix[:80]!r} cannot begin a reference's name", remedy=_REMEDY)
    return prefix
