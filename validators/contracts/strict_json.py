"""JSON that strangers wrote: one meaning or none."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


class AmbiguousJson(ValueError):
    """JSON that readers take differently; says why, and nothing of what was written."""


def parse_strictly(text: str | bytes) -> Any:
    """The value that a JSON text stands for.

    Raises:
        AmbiguousJson: it repeats a key of an object, or holds NaN or infinity.
        ValueError: it is no JSON.
        RecursionError: it is nested too deeply.
    """
    return json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse)


def _distinct(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    listed = list(pairs)
    found = dict(listed)
    if len(found) != len(listed):
        raise AmbiguousJson("a key is written twice")
    return found


def _refuse(name: str) -> float:
    raise AmbiguousJson("NaN and Infinity are no numbers of JSON")
