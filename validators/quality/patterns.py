"""Regular expressions in suites, limited to those that no text can hold up.

Python's engine tries alternatives one after the other, so that a short pattern may take longer than
the age of the universe on a short text. Here a pattern starts at the text's start, repeats nothing
that itself repeats, looks neither ahead nor back, and the ways to split a text between its
repetitions are counted and bounded.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

from re import _constants as ops, _parser as parser  # type: ignore[attr-defined] # isort: skip

MAX_PATTERN = 200
MAX_SUBJECT = 256
"""Longest text of a frame: a tag's value."""

MAX_WAYS = 1024
_REPEATS = frozenset({ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT})
_PLAIN = frozenset({ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN, ops.AT})


def find_pattern_fault(pattern: str) -> str | None:
    """What is wrong with a pattern, as the end of a sentence; None where it may be used."""
    if not pattern or len(pattern) > MAX_PATTERN:
        return f"has {len(pattern)} characters, and 1 to {MAX_PATTERN} are read"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what Python will read in another way one day
            parsed = parser.parse(pattern)
    except (re.error, Warning, OverflowError, RecursionError, ValueError):
        return "is not a regular expression"
    items = list(parsed)
    if not items or items[0] != (ops.AT, ops.AT_BEGINNING):
        return "does not begin with ^"
    try:
        ways = _ways(items, inside=False)
    except _Refused as refusal:
        return str(refusal)
    if ways > MAX_WAYS:
        return "has too many repetitions that can share one text"
    return None


class _Refused(Exception):
    pass


def _ways(items: Any, *, inside: bool) -> int:
    """In how many ways a text can be split; `inside` a repetition nothing may repeat or branch."""
    ways = 1
    for operation, argument in items:
        if operation in _PLAIN:
            continue
        for count in _nested(operation, argument, inside=inside):
            ways *= count
            if ways > MAX_WAYS:
                return ways
    return ways


def _nested(operation: Any, argument: Any, *, inside: bool) -> Iterator[int]:
    if operation in _REPEATS:
        if inside:
            raise _Refused("repeats something that itself repeats")
        low, high, item = argument
        yield max(1, min(int(high), MAX_SUBJECT) - int(low) + 1)
        yield _ways(item, inside=True)
    elif operation is ops.SUBPATTERN:
        _group, _on, _off, item = argument
        yield _ways(item, inside=inside)
    elif operation is ops.BRANCH:
        if inside:
            raise _Refused("repeats a choice")
        yield sum(_ways(item, inside=inside) for item in argument[1])
    else:
        raise _Refused("looks ahead, looks back or refers to what it matched before")
