"""What a released object may be, read from its bytes rather than from what it is called."""

from __future__ import annotations

import json
import re
import struct
from typing import Any

_SOUND = (b"RIFF", b"fLaC", b"OggS", b"ID3", b"FORM", b".snd", b"\xff\xfb", b"\xff\xf3")
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_CHUNKS = frozenset({b"IHDR", b"PLTE", b"IDAT", b"IEND"})
_HASH = re.compile(r"[0-9a-f]{32}")
_MAX_NUMBERS = 64


def is_sound(data: bytes) -> bool:
    """Whether the bytes begin as a sound file does."""
    return data.startswith(_SOUND)


def has_extra_chunks(png: bytes) -> bool:
    """Whether a PNG carries anything but its picture (EXIF, text, profiles), or a trailer."""
    if not png.startswith(_PNG):
        return True
    place = len(_PNG)
    while place + 8 <= len(png):
        length, kind = struct.unpack(">I4s", png[place : place + 8])
        if kind not in _PNG_CHUNKS:
            return True
        place += 12 + length
        if kind == b"IEND":
            return bool(place != len(png))
    return True


def is_voice_descriptor(data: bytes) -> bool:
    """Whether the bytes are a hash and a few numbers, too few to play or to recognise anyone by."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return False
    if not isinstance(document, dict) or not _HASH.fullmatch(str(document.pop("voice", ""))):
        return False
    leaves = list(_leaves(document))
    return len(leaves) <= _MAX_NUMBERS and all(
        isinstance(leaf, int | float) and not isinstance(leaf, bool) for leaf in leaves
    )


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]
