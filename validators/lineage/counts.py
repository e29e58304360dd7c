"""Counts of a category's values in bounded memory, exact for every value that is kept.

Of more than MAX_VALUES values those with the smallest digests are kept: a value among the smallest
of a whole is among the smallest of every part that it occurs in, so its count is exact, and merging
is associative and commutative whatever the parts were (bottom-k sampling; Cohen and Kaplan, 2007).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from validators.contracts.errors import BadInput

MAX_VALUES = 1024

_SCALE = 1000  # luma is summed in thousandths, as whole numbers: sums do not depend on their order


@dataclass(frozen=True, slots=True)
class Brightness:
    """Mean luma of pictures, 0..255, as sums that merge exactly: thousandths and their squares."""

    pictures: int
    total: int
    squares: int

    def __post_init__(self) -> None:
        if self.pictures < 1:
            raise BadInput("a mean brightness is of no picture", where="brightness")

    @staticmethod
    def of(luma: float) -> Brightness:
        """One picture. Raises BadInput where the luma is not finite."""
        if not math.isfinite(luma):
            raise BadInput("a picture's brightness is not a finite number", where="brightness")
        scaled = round(luma * _SCALE)
        return Brightness(1, scaled, scaled * scaled)

    @property
    def mean(self) -> float:
        return self.total / self.pictures / _SCALE

    @property
    def deviation(self) -> float:
        """The standard deviation between pictures; 0 for a single one."""
        if self.pictures < 2:
            return 0.0
        spread = self.pictures * self.squares - self.total * self.total  # exact
        return math.sqrt(max(spread, 0) / (self.pictures * (self.pictures - 1))) / _SCALE


@dataclass(frozen=True, slots=True)
class Counted:
    """How many samples have a value, and how bright their pictures are."""

    value: str
    samples: int
    brightness: Brightness | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """The values of one category, in the order of their text; `rest` samples have other ones.

    A `rest` above 0 means that there were more than MAX_VALUES values.
    """

    name: str
    values: tuple[Counted, ...] = ()
    rest: int = 0

    @property
    def samples(self) -> int:
        return sum(item.samples for item in self.values) + self.rest

    @property
    def known(self) -> frozenset[str]:
        return frozenset(item.value for item in self.values)

    def count(self, value: str) -> int:
        return next((item.samples for item in self.values if item.value == value), 0)

    def could_hold(self, value: str) -> bool:
        """Whether the value was counted, or may be among those that were not kept."""
        if not self.rest or value in self.known:
            return value in self.known
        return _rank(value) > max(_rank(item.value) for item in self.values)


def keep_counts(name: str, values: Iterable[Counted], rest: int = 0) -> Counts:
    """Counts of these distinct values, cut to MAX_VALUES."""
    found = list(values)
    if len(found) > MAX_VALUES:
        found.sort(key=lambda item: _rank(item.value))
        dropped = found[MAX_VALUES:]
        rest += max(sum(item.samples for item in dropped), len(dropped))
        found = found[:MAX_VALUES]
    return Counts(name, tuple(sorted(found, key=lambda item: item.value)), rest)


def merge_counts(one: Counts, other: Counts) -> Counts:
    """Counts over the samples of both."""
    found: dict[str, Counted] = {item.value: item for item in one.values}
    for item in other.values:
        before = found.get(item.value)
        found[item.value] = item if before is None else merge_counted(before, item)
    return keep_counts(one.name, found.values(), one.rest + other.rest)


def merge_all(one: tuple[Counts, ...], other: tuple[Counts, ...]) -> tuple[Counts, ...]:
    """Counts by name, in the order of their names."""
    there: Mapping[str, Counts] = {item.name: item for item in other}
    here = {item.name: item for item in one}
    merged = {
        name: merge_counts(here[name], there[name]) if name in here and name in there
        else here.get(name) or there[name]
        for name in here.keys() | there.keys()
    }  # fmt: skip
    return tuple(merged[name] for name in sorted(merged))


def merge_brightness(one: Brightness | None, other: Brightness | None) -> Brightness | None:
    if one is None or other is None:
        return one or other
    return Brightness(
        one.pictures + other.pictures, one.total + other.total, one.squares + other.squares
    )


def merge_counted(one: Counted, other: Counted) -> Counted:
    """The same value over the samples of both."""
    return Counted(
        one.value,
        one.samples + other.samples,
        merge_brightness(one.brightness, other.brightness),
    )


def _rank(value: str) -> bytes:
    return hashlib.sha256(value.encode()).digest()
