"""What an operation on one medium gives back: bytes that may leave, and what was done, by kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from validators.contracts.dataset import Media


@dataclass(frozen=True, slots=True)
class Region:
    """Where something was redacted: a pixel box, or a span of characters in the released text.

    A box is (left, top, right, bottom); a span is (start, end). Never what was there.
    """

    kind: str  # "FACE", "PERSON", "PHONE_NUMBER", "VOICE" ...
    place: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Redacted:
    """The released form of a medium."""

    data: bytes
    media_type: str
    measures: tuple[tuple[str, float], ...]
    regions: tuple[Region, ...]


class Redactor(Protocol):
    """Applies one policy rule to one medium. The same bytes and key give the same result."""

    def redact(self, media: Media, data: bytes) -> Redacted: ...
