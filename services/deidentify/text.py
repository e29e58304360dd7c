"""Names, contacts and numbers out of texts: each finding replaced by what stands for it."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from services.deidentify.policy import Rule
from services.deidentify.pseudonyms import ReleaseKey, pseudonym
from services.deidentify.recognisers import LANGUAGE, load_analyzer
from services.deidentify.redaction import Redacted, Region
from services.ingest.measures import measure_text
from validators.contracts.dataset import Media


@dataclass(frozen=True, slots=True)
class Found:
    """One entity: its kind, where it stands (characters, end exclusive), how sure the finder is."""

    kind: str
    start: int
    end: int
    score: float


class TextRedactor:
    """The operation `pseudonymise`: UUIDs keyed to the scope, or the kind as `<PERSON>`."""

    def __init__(self, rule: Rule, key: ReleaseKey) -> None:
        self._key = key
        self._label = dict(rule.options).get("replacement", "uuid") == "label"

    def redact(self, media: Media, data: bytes) -> Redacted:
        text = data.decode("utf-8")
        released, regions = replace(text, find_entities(text), self._stand_in)
        return Redacted(released.encode(), "text/plain", measure_text(released), regions)

    def _stand_in(self, kind: str, value: str) -> str:
        return f"<{kind}>" if self._label else pseudonym(self._key, kind, value)


def find_entities(text: str) -> list[Found]:
    """What personal data Presidio and our recognisers see in the text, merged and in order."""
    results = load_analyzer().analyze(fold(text), language=LANGUAGE)
    return merge(Found(item.entity_type, item.start, item.end, item.score) for item in results)


def fold(text: str) -> str:
    """Full-width and styled characters as plain ones, each in its place, so that offsets hold."""
    return "".join(
        plain if len(plain := unicodedata.normalize("NFKC", char)) == 1 else char for char in text
    )


def merge(found: Iterable[Found]) -> list[Found]:
    """Overlapping findings as one that covers them all, called by its surest, then longest."""
    merged: list[Found] = []
    kinds: list[tuple[float, int]] = []
    for item in sorted(found, key=lambda one: (one.start, -one.end, one.kind)):
        rank = (item.score, item.end - item.start)
        if merged and item.start < merged[-1].end:
            last = merged[-1]
            surer = rank > kinds[-1]
            merged[-1] = Found(
                item.kind if surer else last.kind,
                last.start,
                max(last.end, item.end),
                max(item.score, last.score),
            )
            kinds[-1] = max(rank, kinds[-1])
        else:
            merged.append(item)
            kinds.append(rank)
    return merged


def replace(
    text: str, found: Iterable[Found], stand_in: Callable[[str, str], str]
) -> tuple[str, tuple[Region, ...]]:
    """The text with each finding replaced, and the spans of the replacements in the new text."""
    parts: list[str] = []
    regions: list[Region] = []
    done = length = 0
    for item in found:
        replacement = stand_in(item.kind, text[item.start : item.end])
        start = length + item.start - done
        regions.append(Region(item.kind, (start, start + len(replacement))))
        parts += [text[done : item.start], replacement]
        length, done = start + len(replacement), item.end
    return "".join([*parts, text[done:]]), tuple(regions)
