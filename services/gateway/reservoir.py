"""A fair sample of a stream in bounded memory (algorithm R; Vitter, 1985). Pure."""

from __future__ import annotations

import random
from typing import Generic, TypeVar

Row = TypeVar("Row")


class Reservoir(Generic[Row]):
    """At most `limit` of the rows that were offered, each of them as likely to be kept.

    A place is given out before the row is there, so that what is not kept need never be made.
    """

    def __init__(self, limit: int, chance: random.Random) -> None:
        self._chance = chance
        self._places: list[Row | None] = []
        self._limit = limit
        self.seen = 0

    def offer(self) -> int | None:
        """The place for one more row, or None where it is not kept."""
        self.seen += 1
        if len(self._places) < self._limit:
            self._places.append(None)
            return len(self._places) - 1
        place = self._chance.randrange(self.seen)
        return place if place < self._limit else None

    def put(self, place: int, row: Row) -> None:
        self._places[place] = row

    def withdraw(self) -> None:
        """What was offered turned out to be no row: it was not seen."""
        self.seen -= 1

    def rows(self) -> list[Row]:
        """What is kept, in an order that says nothing of when it came."""
        found = [row for row in self._places if row is not None]
        self._chance.shuffle(found)
        return found

    def __len__(self) -> int:
        return sum(row is not None for row in self._places)
