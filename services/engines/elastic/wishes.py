"""Which shapes outside are worth an engine: rounded, each once, and never more than a bound. Pure.

A client chooses the shapes it sends, so it must not be able to make us build without end: sizes
beyond a multiple of what was deployed, and shapes beyond a number, are not asked for.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from services.engines.profiles.assign import Sizes
from services.engines.profiles.histogram import round_up

LEVEL = 18
"""Sizes are rounded up to two significant bits (4, 6, 8, 12, 16, 24 ...), so that neighbours make
one request; the grid is the histogram's."""


class Wish(enum.Enum):
    """What becomes of a shape outside: NEW is to be filed now, the others are not."""

    NEW = "new"
    KNOWN = "known"
    BEYOND = "beyond"  # too large to be built for, or outside declared bounds
    SURPLUS = "surplus"  # one shape too many


@dataclass(slots=True)
class _Seen:
    times: int = 0
    filed: bool = False


class ShapeWishes:
    """The shapes one encoder of a revision has asked for. One thread at a time."""

    def __init__(self, largest: Mapping[str, int], *, factor: int, most: int) -> None:
        """`largest` are the sizes of the engine that was deployed: they do not grow with swaps."""
        self._limits = {name: size * factor for name, size in largest.items()}
        self._most = most
        self._seen: dict[Sizes, _Seen] = {}

    def consider(self, sizes: Mapping[str, int]) -> tuple[Wish, Sizes]:
        """Whether to file a request, and its rounded sizes.

        What was dropped is tried again when it was asked for twice as often: a full disk is not
        hammered by every request.
        """
        if any(sizes[name] > most for name, most in self._limits.items()):
            return Wish.BEYOND, ()
        rounded = tuple(
            (name, min(most, round_up(sizes[name], LEVEL))) for name, most in self._limits.items()
        )
        seen = self._seen.get(rounded)
        if seen is None:
            if len(self._seen) >= self._most:
                return Wish.SURPLUS, rounded
            seen = self._seen[rounded] = _Seen()
        seen.times += 1
        if seen.filed or seen.times & (seen.times - 1):
            return Wish.KNOWN, rounded
        seen.filed = True
        return Wish.NEW, rounded

    def dropped(self, sizes: Sizes) -> None:
        """A request that was to be filed could not be."""
        if sizes in self._seen:
            self._seen[sizes].filed = False

    def renew(self) -> None:
        """A new engine serves: what is outside of it is asked for again, within the same number."""
        for seen in self._seen.values():
            seen.times, seen.filed = 0, False
