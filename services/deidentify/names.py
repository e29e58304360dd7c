"""Names of people in a parsed text, found for recall.

The small spaCy model calls a good part of the names in captions an organisation or nothing at all,
and a few nouns a person. So a name is: what the model calls PERSON, unless that is a single letter
or a single lower-case word; any run of capitalised proper nouns that the model does not call a
place, date or people; and a capitalised noun that opens a sentence and does something ("Grace
playing violin", "George the barber"). What this finds, and what it takes by mistake, is measured on
tests/services/deidentify/captions.jsonl.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

# Entities that a run of proper nouns may be part of without being a name.
NOT_PEOPLE = frozenset(
    {"GPE", "LOC", "FAC", "NORP", "DATE", "TIME", "LANGUAGE", "EVENT", "LAW"}
    | {"MONEY", "QUANTITY", "ORDINAL", "CARDINAL", "PERCENT"}
)
_AFTER_A_SUBJECT = frozenset({"DT", "CC", "VBD", "VBZ", "POS"})
_JOINERS = frozenset("-'’")

Span = tuple[int, int]
"""Start and end in characters, end exclusive."""


def find_names(doc: Any) -> list[Span]:
    """Spans of names in a spaCy Doc (tagged, parsed, with entities); they may overlap."""
    people = [entity for entity in doc.ents if entity.label_ == "PERSON"]
    spans = [(item.start_char, item.end_char) for item in people if _plausible(item.text)]
    spans += [_span(run) for run in _runs(doc) if _may_be_name(run, doc)]
    spans += [_span([token]) for token in doc if _opens_and_acts(token, doc)]
    return sorted(set(spans))


def _plausible(text: str) -> bool:
    core = text.strip(" .'’\"")
    return len(core) > 1 and (" " in core or not core[0].islower())


def _runs(doc: Any) -> Iterator[list[Any]]:
    """Maximal runs of capitalised proper nouns; a hyphen or an apostrophe may stand inside."""
    run: list[Any] = []
    for token in doc:
        inside = (
            run and token.text in _JOINERS and token.i + 1 < len(doc) and _proper(doc[token.i + 1])
        )
        if inside or _proper(token):
            run.append(token)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _proper(token: Any) -> bool:
    text = token.text
    bare = len(text) > 1 and not text.endswith(".")
    return token.pos_ == "PROPN" and bare and text[0].isupper() and text.replace("’", "").isalpha()


def _may_be_name(run: Sequence[Any], doc: Any) -> bool:
    labels = {token.ent_type_ for token in run}
    # In "Penelope Cruz" the model takes the first half, and only that, for a place.
    half_a_place = [token.ent_type_ for token in run] == ["GPE", ""]
    if labels & NOT_PEOPLE and not half_a_place:
        return False
    if "PERSON" in labels:
        return True
    if all(token.text.isupper() for token in run):
        return False  # an abbreviation
    if run[0].i > 0 and doc[run[0].i - 1].tag_ == "DT":
        return False  # "the Thames", "a Boeing"
    if len(run) == 1 and _opens(run[0], doc):
        return _opens_and_acts(run[0], doc)  # the capital itself says nothing there
    last = run[-1]
    following = doc[last.i + 1].text if last.i + 1 < len(doc) else ""
    # "Golden Gate bridge" names a thing; in "Iker Casillas diving" the noun is a verb misread.
    return last.dep_ != "compound" or not following or following.endswith("ing")


def _opens_and_acts(token: Any, doc: Any) -> bool:
    if not (_opens(token, doc) and token.text[0].isupper() and len(token.text) > 2):
        return False
    following = doc[token.i + 1].tag_ if token.i + 1 < len(doc) else ""
    if not token.text.isalpha() or token.tag_ not in ("NN", "NNP"):
        return False
    return following == "VBG" or (token.tag_ == "NNP" and following in _AFTER_A_SUBJECT)


def _opens(token: Any, doc: Any) -> bool:
    """Whether the token is the first word of a sentence, a quotation mark before it or not."""
    quoted = token.i > 0 and doc[token.i - 1].is_quote and doc[token.i - 1].is_sent_start
    return bool(token.is_sent_start or quoted)


def _span(run: Sequence[Any]) -> Span:
    return run[0].idx, run[-1].idx + len(run[-1].text)
