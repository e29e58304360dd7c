"""What a tokenizers file (Hugging Face's JSON form) says, read as data: nothing of it is run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from validators.compatibility.facts import TokenizerFacts
from validators.contracts.digest import digest_value, short
from validators.contracts.errors import BadInput, TooLarge

MAX_BYTES = 64 * 1024 * 1024
_LONGEST = 120  # of a setting written out; a longer one is named by its digest


def read_tokenizer(data: bytes) -> TokenizerFacts:
    """The facts of a tokenizer file.

    Raises:
        BadInput: no JSON object with a model.  TooLarge: over MAX_BYTES.
    """
    if len(data) > MAX_BYTES:
        raise TooLarge(f"the tokenizer has {len(data)} bytes, over {MAX_BYTES}")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _not_one("it is no JSON") from error
    model = document.get("model") if isinstance(document, dict) else None
    if not isinstance(model, dict):
        raise _not_one("it has no model")
    return TokenizerFacts(
        kind=str(model.get("type", "unknown")),
        vocabulary=_vocabulary(model.get("vocab")),
        special=_special(document.get("added_tokens")),
        settings=_settings(document, model),
    )


def _vocabulary(found: object) -> tuple[tuple[str, int], ...]:
    """WordPiece and BPE give ids by token, Unigram a list of (token, score) in the ids' order."""
    if isinstance(found, dict):
        pairs = [(str(token), place) for token, place in found.items() if isinstance(place, int)]
    elif isinstance(found, list):
        pairs = [(str(entry[0]), place) for place, entry in enumerate(found)
                 if isinstance(entry, list) and entry]  # fmt: skip
    else:
        raise _not_one("it has no vocabulary")
    return tuple(sorted(pairs))


def _special(found: object) -> tuple[tuple[str, int], ...]:
    entries = found if isinstance(found, list) else []
    return tuple(sorted(
        (str(entry.get("content")), entry["id"])
        for entry in entries
        if isinstance(entry, dict) and entry.get("special") and isinstance(entry.get("id"), int)
    ))  # fmt: skip


def _settings(document: Mapping[str, Any], model: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    normalizer = document.get("normalizer") or {}
    truncation = document.get("truncation") or {}
    return (
        ("lowercase", str(_first(normalizer, "lowercase", "do_lower_case", otherwise=False))),
        ("max_tokens", str(truncation.get("max_length", "not bounded"))),
        ("normalizer", _text(document.get("normalizer"))),
        ("padding", _text(document.get("padding"))),
        ("post_processor", _text(document.get("post_processor"))),
        ("pre_tokenizer", _text(document.get("pre_tokenizer"))),
        ("subword_prefix", str(model.get("continuing_subword_prefix", "none"))),
        ("truncation", _text(document.get("truncation"))),
        ("unknown_token", str(model.get("unk_token", "none"))),
    )


def _first(found: object, *names: str, otherwise: object) -> object:
    """A setting of a normalizer or of the first in a sequence of them that has it."""
    if not isinstance(found, dict):
        return otherwise
    for name in names:
        if name in found:
            return found[name]
    if found.get("type") == "Lowercase":
        return True
    for part in found.get("normalizers", []):
        if (inner := _first(part, *names, otherwise=None)) is not None:
            return inner
    return otherwise


def _text(part: object) -> str:
    """Its type and settings, or its type and digest where that is long."""
    if not isinstance(part, dict):
        return "none"
    text = json.dumps(part, sort_keys=True, ensure_ascii=True)
    if len(text) <= _LONGEST:
        return text
    return f"{part.get('type', 'settings')} {short(digest_value('tokenizer-part', text))}"


def _not_one(why: str) -> BadInput:
    return BadInput(
        f"the tokenizer asset cannot be read: {why}",
        where="tokenizer",
        remedy="Give the tokenizer.json that belongs to the checkpoint.",
    )
