"""Readings of sensors and timed texts, as JSON lines: one object a line, in order of time.

    {"ts": 1718000000000, "values": {"ax": 0.1, "ay": -9.8}}
    {"ts": "2026-11-30T10:00:00.5+01:00", "text": "door opens"}

Lines are given out as they are read; nothing is sorted. What makes a line meaningless ends the
track with a BadInput that names it: no JSON, an unknown key, a value that is not finite, a time
that is naive or impossible, another kind of clock than before.

Anomalies, by line (from 1):
    backwards-step: earlier than the line before; it is left out.
    timezone-jump: the zone changes within the stream, or a stream of under a minute a line steps on
        by just so many quarters of an hour as zones lie apart; it is kept.
    leap-second: within 23:59:60; it is at the midnight that ends it.
    repeated-time: the same moment as the line before; it is kept.
    channels-changed: other channels than the first line's; it is kept.
"""

from __future__ import annotations

import abc
import itertools
import math
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

from services.ingest.measures import Measures
from services.ingest.media.instants import BadTime, Instant, read_instant
from services.ingest.media.limits import Form, MediaLimits
from services.ingest.media.sources import MediaFile
from services.ingest.media.tracks import Decoding
from services.ingest.normalise import normalise_text
from services.ingest.tracks import Item
from validators.contracts.errors import BadInput, TooLarge
from validators.contracts.strict_json import parse_strictly

_PEEKED = 64  # lines that say what the channels are, and how often they come
_QUARTER_MS = 900_000
_MOST_QUARTERS = 26 * 4  # from UTC-12 to UTC+14
_DENSE_MS = 60_000
_NAME = re.compile(r"[A-Za-z_][\w.\-]{0,31}", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    instant: Instant
    content: Mapping[str, float] | str


class _Lines(Decoding, abc.ABC):
    """What both kinds share: lines of one file, at times that do not go back."""

    _field = ""
    _default = ""

    def __init__(self, file: MediaFile, limits: MediaLimits, form: Form) -> None:
        super().__init__(file, limits, form.modality or self._default)
        self._count = 0
        self._step_ms = math.inf  # the latest
        self._span: tuple[float, float] | None = None
        self._peeked = tuple(itertools.islice(self._peek(), _PEEKED))

    @property
    def measures(self) -> Measures:
        start, end = self._span or (0.0, 0.0)
        values = {"duration_ms": end - start, "items": float(self._count), "start_ms": start}
        return tuple((name, round(value, 6)) for name, value in values.items())

    def items(self) -> Iterator[Item]:
        """`place` is "line N"."""
        before: Instant | None = None
        for line in self._read():
            instant = line.instant
            if before is not None and not self._follows(line, before):
                continue
            self._notice(line)
            start = self._span[0] if self._span else instant.ms
            if instant.ms - start > self._limits.duration_ms:
                raise TooLarge(
                    f"the stream is longer than {self._limits.duration_ms:g} ms",
                    where=self._where(line.number), remedy="Split it, or raise the limit.",
                )  # fmt: skip
            self._span = (start, instant.ms)
            before = instant
            yield Item(self._count, instant.ms, line.content, 0.0, f"line {line.number}")
            self._count += 1

    def _follows(self, line: _Line, before: Instant) -> bool:
        """Whether the line may stand after the one before; what is odd about it is noted."""
        instant, number = line.instant, line.number
        if (instant.zone_minutes is None) != (before.zone_minutes is None):
            self._stop(number, "clock-changed: numbers and texts are mixed as times")
        if instant.zone_minutes != before.zone_minutes:
            apart = (instant.zone_minutes or 0) - (before.zone_minutes or 0)
            self._log.add("timezone-jump", number, instant.ms, f"{apart:+d} minutes")
        elif quarters := self._quarters(instant.ms - before.ms):
            detail = f"{15 * quarters:+d} minutes, and the zone is said to be the same"
            self._log.add("timezone-jump", number, instant.ms, detail)
        if instant.ms < before.ms:
            detail = f"{before.ms - instant.ms:.3f} ms back, left out"
            self._log.add("backwards-step", number, instant.ms, detail)
            return False
        if instant.ms == before.ms:
            self._log.add("repeated-time", number, instant.ms, "kept")
        self._step_ms = (instant.ms - before.ms) or self._step_ms
        return True

    def _quarters(self, step_ms: float) -> int:
        """How many quarters of an hour a step makes that looks like another zone, or 0."""
        quarters = round(step_ms / _QUARTER_MS)
        beside = abs(step_ms - quarters * _QUARTER_MS)
        dense = self._step_ms < _DENSE_MS and beside <= 2 * self._step_ms
        return quarters if dense and 1 <= abs(quarters) <= _MOST_QUARTERS else 0

    def _notice(self, line: _Line) -> None:
        if line.instant.leap_second:
            detail = "at the midnight that ends it"
            self._log.add("leap-second", line.number, line.instant.ms, detail)

    def _peek(self) -> Iterator[_Line]:
        """The first lines, up to the first that is bad: `items` will say what is wrong with it."""
        try:
            yield from self._read()
        except BadInput:
            return

    def _read(self) -> Iterator[_Line]:
        bound = self._limits.line_bytes
        empty = True
        with self._file.view() as view:
            for number in itertools.count(1):
                raw = view.readline(bound + 1)
                if not raw:
                    break
                if number > self._limits.lines or len(raw) > bound:
                    raise TooLarge(
                        f"more than {self._limits.lines} lines, or a line of more than "
                        f"{bound} bytes", where=self._where(number),
                        remedy="Split the file, or raise the limit.",
                    )  # fmt: skip
                if raw.strip():
                    empty = False
                    yield self._parse(raw, number)
        if empty:
            self._stop(1, "the file holds no line")

    def _parse(self, raw: bytes, number: int) -> _Line:
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            value = parse_strictly(text)
        except (ValueError, RecursionError):
            self._stop(number, "not one JSON object with distinct keys, in UTF-8, without NaN")
        if not isinstance(value, dict):
            self._stop(number, "not an object")
        if odd := sorted(value.keys() - {"ts", self._field}):
            self._stop(number, f"unknown keys: {_named(odd)}")
        if value.keys() != {"ts", self._field}:
            self._stop(number, f'an object has to have "ts" and "{self._field}"')
        try:
            instant = read_instant(value["ts"])
        except BadTime as error:
            self._stop(number, f"{error.reason}: {error.detail}")
        return _Line(number, instant, self._content(value[self._field], number))

    @abc.abstractmethod
    def _content(self, value: Any, number: int) -> Mapping[str, float] | str:
        """What the line says beside its time. Raises BadInput where that is nothing of the kind."""

    def _where(self, number: int) -> str:
        return f"{self._file.name}, line {number}"

    def _stop(self, number: int, what: str) -> NoReturn:
        raise BadInput(
            what, where=self._where(number), remedy="Correct the line, or record again."
        )  # fmt: skip


class SensorTrack(_Lines):
    """A `MediaTrack` of named readings, {channel: value}. Raises, on opening: nothing."""

    _field = "values"
    _default = "imu"

    @property
    def period_ms(self) -> float | None:
        """The median interval of the first lines; None where there is one line."""
        times = [line.instant.ms for line in self._peeked]
        steps = [later - earlier for earlier, later in pairwise(times) if later > earlier]
        return statistics.median(steps) if steps else None

    @property
    def channels(self) -> tuple[str, ...]:
        """Of the first line, sorted."""
        first = self._peeked[0].content if self._peeked else {}
        return tuple(sorted(first)) if isinstance(first, Mapping) else ()

    @property
    def feature_dims(self) -> tuple[int, ...]:
        return (len(self.channels),)

    def _notice(self, line: _Line) -> None:
        super()._notice(line)
        own = set(line.content)
        first = set(self.channels)
        if own != first:
            detail = f"missing: {_named(first - own)}; new: {_named(own - first)}"
            self._log.add("channels-changed", line.number, line.instant.ms, detail)

    def _content(self, value: Any, number: int) -> Mapping[str, float] | str:
        if not isinstance(value, dict) or not 0 < len(value) <= self._limits.channels:
            self._stop(number, f"values are 1 to {self._limits.channels} named numbers")
        readings = {}
        for name, reading in value.items():
            if isinstance(reading, bool) or not isinstance(reading, int | float):
                self._stop(number, f"{_named([name])} is no number")
            readings[name] = _finite(reading)
            if not math.isfinite(readings[name]):
                self._stop(number, f"{_named([name])} is not finite")
        return readings


class EventTrack(_Lines):
    """A `MediaTrack` of timed texts, in the normal form of texts. Raises, on opening: nothing."""

    _field = "text"
    _default = "text"

    @property
    def period_ms(self) -> float | None:
        return None

    @property
    def feature_dims(self) -> tuple[int, ...]:
        return ()

    def _content(self, value: Any, number: int) -> Mapping[str, float] | str:
        if not isinstance(value, str):
            self._stop(number, "text is no text")
        try:
            return normalise_text(value)
        except TooLarge as error:
            raise TooLarge(error.what, where=self._where(number), remedy="Shorten it.") from error
        except BadInput as error:
            self._stop(number, error.what)


def _finite(reading: float) -> float:
    try:
        return float(reading)
    except OverflowError:  # an integer of hundreds of digits
        return math.inf


def _named(names: Iterable[str]) -> str:
    """Names that look like names; what else a stranger wrote there stays there."""
    listed = sorted(names)
    shown = [name if _NAME.fullmatch(name) else "one of odd characters" for name in listed[:8]]
    return ", ".join(shown) + (f" and {len(listed) - 8} more" if len(listed) > 8 else "") or "none"
