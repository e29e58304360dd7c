"""The moments of the time base: a rational rate, so that no hour of ticks drifts by rounding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000


def to_ns(value_ms: float) -> int:
    """Milliseconds as whole nanoseconds."""
    return round(value_ms * NS_PER_MS)


def to_ms(value_ns: int) -> float:
    """Whole nanoseconds as milliseconds, to the microsecond."""
    return round(value_ns / NS_PER_MS, 3)


@dataclass(frozen=True, slots=True)
class Ticks:
    """`count` moments at `rate_hz` from `start_ns`.

    Tick i stands at start_ns + i / rate_hz, rounded once to the nanosecond: no tick is off by more
    than half a nanosecond, whatever its number.
    """

    rate_hz: Fraction
    count: int
    start_ns: int = 0

    def at(self, index: int) -> int:
        """When tick `index` stands, in nanoseconds."""
        numerator, denominator = self.rate_hz.numerator, self.rate_hz.denominator
        whole = 2 * index * NS_PER_S * denominator + numerator
        return self.start_ns + whole // (2 * numerator)

    def __iter__(self) -> Iterator[int]:
        return (self.at(index) for index in range(self.count))

    def first_from(self, ts_ns: int) -> int:
        """The number of the first tick at or after `ts_ns`, within 0 and `count`."""
        numerator, denominator = self.rate_hz.numerator, self.rate_hz.denominator
        guess = max(0, (ts_ns - self.start_ns) * numerator // (NS_PER_S * denominator))
        while guess < self.count and self.at(guess) < ts_ns:
            guess += 1
        return min(guess, self.count)


def ticks_over(rate_hz: Fraction, start_ns: int, end_ns: int) -> Ticks:
    """The ticks from `start_ns` up to and including `end_ns`: one at least."""
    span = max(0, end_ns - start_ns)
    count = span * rate_hz.numerator // (NS_PER_S * rate_hz.denominator) + 1
    return Ticks(rate_hz, count, start_ns)
