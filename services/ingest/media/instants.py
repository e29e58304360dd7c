"""Times as sensors write them, each understood or refused by name. Pure.

A number is milliseconds on whatever clock the sensor has, from 0 on. A text is RFC 3339 with its
zone; it becomes milliseconds since 1970 in UTC. A leap second (23:59:60 UTC at a month's end) has
no place of its own in that count: all of it is at the midnight that ends it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

FIRST_YEAR, LAST_YEAR = 1970, 2100
LAST_MS = datetime(LAST_YEAR, 1, 1, tzinfo=UTC).timestamp() * 1000

_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d):(\d\d)(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)?", re.ASCII
)
_DAY_END = timedelta(hours=23, minutes=59)


class BadTime(ValueError):
    """A time that is none. `reason` is a stable code: bad-time, naive-time, impossible-time."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Instant:
    """`ms` on its clock; `zone_minutes` east of UTC, None for a number."""

    ms: float
    zone_minutes: int | None = None
    leap_second: bool = False


def read_instant(value: object) -> Instant:
    """Raises: BadTime."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise BadTime("bad-time", "neither a number of milliseconds nor a text")
    if isinstance(value, str):
        return _read_text(value)
    if not 0 <= value <= LAST_MS:  # so is what is no number at all
        raise BadTime("impossible-time", f"not between 0 and {LAST_MS:.0f} ms")
    return Instant(float(value))


def _read_text(text: str) -> Instant:
    found = _RFC3339.fullmatch(text)
    if found is None:
        raise BadTime("bad-time", "not a time as RFC 3339 writes it")
    day, minute, second, fraction, zone = found.groups()
    if zone is None:
        raise BadTime("naive-time", "a time without its zone")
    offset = _offset(zone)
    try:
        whole = datetime.fromisoformat(f"{day}T{minute}:00").replace(tzinfo=timezone(offset))
        utc = whole.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadTime("impossible-time", "no such day or hour") from error
    if not FIRST_YEAR <= utc.year < LAST_YEAR:
        raise BadTime("impossible-time", f"not between {FIRST_YEAR} and {LAST_YEAR}")
    leap = int(second) == 60
    if int(second) > 60 or (leap and not _ends_month(utc)):
        raise BadTime("impossible-time", "a second above 59 where no leap second can be")
    seconds = 60.0 if leap else int(second) + float(fraction or 0)
    minutes = round(offset.total_seconds() / 60)
    return Instant(utc.timestamp() * 1000 + round(seconds * 1000, 6), minutes, leap)


def _offset(zone: str) -> timedelta:
    if zone in "Zz":
        return timedelta()
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if hours > 23 or minutes > 59:
        raise BadTime("impossible-time", "no such zone")
    size = timedelta(hours=hours, minutes=minutes)
    return -size if zone[0] == "-" else size


def _ends_month(minute: datetime) -> bool:
    """Whether this is the last minute of a month (ITU-R TF.460-6, 2.1)."""
    last = timedelta(hours=minute.hour, minutes=minute.minute) == _DAY_END
    return last and (minute + timedelta(minutes=1)).day == 1
