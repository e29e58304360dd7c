"""Names of people by lists and by form; no model, and nothing shared with the redaction.

Strong: a form of address before a capital ("Dr. Smith"), a given name that is no other word, a
given name before a family name, any capital before a family name that is no other word. Weak:
exactly two capitals in a row inside a sentence. The lists (`given_names.csv`, `surnames.csv`) are
short and mostly of the names common in captions; a rare name that stands alone is not found.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

VERSION = 1
_FOLDER = Path(__file__).parent
_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_TITLES = frozenset(
    {"mr", "mrs", "ms", "miss", "mx", "dr", "prof", "professor", "herr", "frau", "monsieur"}
    | {"madame", "señor", "señora", "sir", "dame", "lord", "lady", "rev"}
)
_PLACEHOLDER = re.compile(
    r"<[A-Z_]{2,40}>|[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
)


@dataclass(frozen=True, slots=True)
class VisibleName:
    start: int
    end: int
    strong: bool


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int
    end: int
    opens: bool  # a sentence
    follows: bool  # directly on the word before, with nothing but a space between

    @property
    def capital(self) -> bool:
        return self.text[0].isupper() and not self.text.isupper()


def version() -> str:
    return f"names {VERSION} of {len(_given())} given and {len(_family())} family names"


def find_names(text: str) -> list[VisibleName]:
    """Names that the text still shows; what the redaction put there is not looked at."""
    words = list(_words(blank_placeholders(text)))
    found = list(_strong(words))
    taken = {place for name in found for place in range(name.start, name.end)}
    weak = (name for name in _weak(words) if name.start not in taken)
    return sorted([*found, *weak], key=lambda name: name.start)


def blank_placeholders(text: str) -> str:
    """The text with pseudonyms and labels as white space, every character keeping its place."""
    return _PLACEHOLDER.sub(lambda match: " " * len(match.group()), text)


def _strong(words: list[_Word]) -> Iterator[VisibleName]:
    index = 0
    while index < len(words):
        length = _name_length(words, index)
        if length:
            yield VisibleName(words[index].start, words[index + length - 1].end, strong=True)
        index += length or 1


def _name_length(words: list[_Word], index: int) -> int:
    """How many words from here are certainly a name: 0, 1 or 2."""
    word = words[index]
    following = words[index + 1] if index + 1 < len(words) else None
    pair = following if following is not None and following.follows else None
    given, family = _given().get(_key(word.text)), _family()
    if pair is not None and pair.capital:
        known = family.get(_key(pair.text))
        if _key(word.text) in _TITLES:
            return 2
        if word.capital and (known is False or (given is not None and known is not None)):
            return 2
    if pair is not None and given is False and family.get(_key(pair.text)) is False:
        return 2  # in small letters
    return 1 if word.capital and given is False else 0


def _weak(words: list[_Word]) -> Iterator[VisibleName]:
    run: list[_Word] = []
    for word in [*words, None]:
        if word is not None and word.capital and (not run or word.follows):
            run.append(word)
            continue
        if len(run) == 2 and not run[0].opens:
            yield VisibleName(run[0].start, run[1].end, strong=False)
        run = [word] if word is not None and word.capital else []


def _words(text: str) -> Iterator[_Word]:
    before = 0
    for match in _WORD.finditer(text):
        between = text[before : match.start()]
        opens = before == 0 or bool(re.search(r"[.!?:\n“\"(]", between))
        follows = before > 0 and between.strip() in ("", ".") and len(between) <= 2
        word = match.group()
        end = match.end()
        if word.endswith(("'s", "’s")):
            word, end = word[:-2], end - 2
        yield _Word(word, match.start(), end, opens, follows)
        before = match.end()


def _key(word: str) -> str:
    return word.casefold().replace("’", "'")


@lru_cache(maxsize=1)
def _given() -> Mapping[str, bool]:
    return _read("given_names.csv")


@lru_cache(maxsize=1)
def _family() -> Mapping[str, bool]:
    return _read("surnames.csv")


def _read(name: str) -> dict[str, bool]:
    """Each name in small letters, and whether it is also another word."""
    with (_FOLDER / name).open(encoding="utf-8", newline="") as stream:
        return {_key(row["name"]): row["also_a_word"] == "yes" for row in csv.DictReader(stream)}
