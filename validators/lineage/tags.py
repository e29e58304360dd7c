"""Tags as categories: one form for one value, and what is no tag at all.

A value is compared in its NFKC form with white space collapsed, so that full-width letters and
stray blanks make no new sensor. Letters of other scripts that look alike stay other letters: they
are not the same value, and `likeness` says what they resemble.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection

MAX_TAG_CHARACTERS = 256

REQUIRED_TAGS = ("sensor", "channels", "lighting", "source")

_LOOK = str.maketrans(
    "аеорсухіјѕԁԛԝһкмтвнαβεικνορτυχ",
    "aeopcyxijsdqwhkmtbhabeikvoptyx",
)
"""Cyrillic and Greek small letters as the Latin ones that they are taken for."""


def find_tag_fault(text: str) -> str | None:
    """Why a value is no tag, as a clause that never repeats the value; or None."""
    if len(text) > MAX_TAG_CHARACTERS:
        return f"is longer than {MAX_TAG_CHARACTERS} characters"
    categories = {unicodedata.category(char) for char in text}
    if "Cs" in categories:
        return "holds half of a surrogate pair"
    if categories & {"Cc", "Zl", "Zp"}:
        return "holds control characters"
    if "Cf" in categories:
        return "holds invisible characters"
    return None


def clean_tag(text: str) -> str:
    """The value in its one form; empty where there is nothing but white space."""
    return " ".join(unicodedata.normalize("NFKC", text).split())


def channel_set(text: str) -> str:
    """Channels in one order, each once: "ir + RGB" is "IR+RGB"."""
    parts = (part.strip().upper() for part in clean_tag(text).split("+"))
    return "+".join(sorted({part for part in parts if part}))


def modality_set(modalities: Collection[str]) -> str:
    """The modalities of one sample in one order: "image+text"."""
    return "+".join(sorted(set(modalities)))


def likeness(value: str, known: Collection[str]) -> str | None:
    """The known value that this one could be taken for, or None."""
    wanted = _skeleton(value)
    return next((item for item in sorted(known) if _skeleton(item) == wanted), None)


def _skeleton(text: str) -> str:
    return clean_tag(text).casefold().translate(_LOOK)
