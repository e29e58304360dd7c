"""Five-field cron expressions: checked before a scheduler ever sees them.

Fields as in POSIX `crontab` plus steps (`*/15`) and names (`mon`, `jan`); no seconds, no `@daily`,
no `L`, `W`, `#`, `R`, `H`, which schedulers read in different ways.
"""

from __future__ import annotations

import re

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)
_LONGEST = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
_PART = re.compile(r"(\*|[0-9]{1,2}|[a-z]{3})(?:-([0-9]{1,2}|[a-z]{3}))?(?:/([0-9]{1,2}))?")


def find_cron_fault(expression: str) -> str | None:
    """What is wrong with the expression as a clause without a period, or None."""
    fields = expression.lower().split()
    if len(fields) != 5:
        return f"it has {len(fields)} fields instead of five"
    chosen: list[set[int]] = []
    for text, (name, low, high, names) in zip(fields, _FIELDS, strict=True):
        values: set[int] = set()
        for part in text.split(","):
            found = _read_part(part, low, high, names)
            if isinstance(found, str):
                return f"its {name} field {text[:40]!r} {found}"
            values |= found
        chosen.append(values)
    return None if fields[4] != "*" else _never(chosen[2], chosen[3])


def _read_part(part: str, low: int, high: int, names: tuple[str, ...]) -> set[int] | str:
    match = _PART.fullmatch(part)
    if match is None or (match[1] == "*" and match[2]):
        return "is not a number, range, list or step"
    if match[1] == "*":
        first, last = low, high
    else:
        start = _number(match[1], low, names)
        stop = _number(match[2], low, names) if match[2] else (high if match[3] else start)
        if start is None or stop is None:
            return "has a name that is not known there"
        first, last = start, stop
    step = int(match[3]) if match[3] else 1
    if not (low <= first <= last <= high) or step < 1:
        return f"goes outside {low}-{high} or runs backwards"
    return set(range(first, last + 1, step))


def _number(text: str, low: int, names: tuple[str, ...]) -> int | None:
    if text.isdigit():
        return int(text)
    return names.index(text) + low if text in names else None


def _never(days: set[int], months: set[int]) -> str | None:
    if all(min(days) > _LONGEST.get(month, 31) for month in months):
        return "it names a day that its months never have, so it would never run"
    return None
