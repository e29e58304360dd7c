from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.media.instants import LAST_MS, BadTime, Instant, read_instant

ZONES = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, Instant(0.0)),
        (1_718_000_000_000.25, Instant(1_718_000_000_000.25)),
        ("1970-01-01T00:00:00Z", Instant(0.0, 0)),
        ("1970-01-01T01:00:00.5+01:00", Instant(500.0, 60)),
        ("1969-12-31t20:00:00-04:00", Instant(0.0, -240)),
        ("2024-02-29 12:00:00.123456789z", Instant(1_709_208_000_123.456789, 0)),
    ],
)
def test_times_are_milliseconds_whatever_their_zone(value: object, expected: Instant) -> None:
    found = read_instant(value)
    assert found.ms == pytest.approx(expected.ms, abs=1e-3)
    assert (found.zone_minutes, found.leap_second) == (expected.zone_minutes, False)


@given(st.datetimes(datetime(1971, 1, 1), datetime(2099, 12, 30), timezones=ZONES))
def test_any_time_of_this_age_is_read_as_the_library_means_it(moment: datetime) -> None:
    found = read_instant(moment.isoformat())
    assert found.ms == pytest.approx(moment.timestamp() * 1000, abs=1e-2)


@pytest.mark.parametrize(
    "text",
    [
        "2016-12-31T23:59:60Z",
        "2016-12-31T23:59:60.75Z",
        "2017-01-01T08:59:60+09:00",
        "2016-12-31T18:59:60.5-05:00",
    ],
)
def test_a_leap_second_is_at_the_midnight_that_ends_it(text: str) -> None:
    midnight = datetime(2017, 1, 1, tzinfo=UTC).timestamp() * 1000
    found = read_instant(text)
    assert (found.ms, found.leap_second) == (midnight, True)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("2026-11-30T10:00:00", "naive-time"),
        ("2026-11-30 10:00:00.5", "naive-time"),
        ("0000-01-01T00:00:00Z", "impossible-time"),
        ("0001-01-01T00:00:00+10:00", "impossible-time"),
        ("9999-12-31T23:59:59Z", "impossible-time"),
        ("9999-12-31T23:59:59-10:00", "impossible-time"),
        ("1969-12-31T23:59:59Z", "impossible-time"),
        ("2100-01-01T00:00:00Z", "impossible-time"),
        ("2026-02-29T00:00:00Z", "impossible-time"),
        ("2026-13-01T00:00:00Z", "impossible-time"),
        ("2026-11-30T24:00:00Z", "impossible-time"),
        ("2026-11-30T10:60:00Z", "impossible-time"),
        ("2026-11-30T10:00:61Z", "impossible-time"),
        ("2026-11-30T10:00:60Z", "impossible-time"),
        ("2026-11-29T23:59:60Z", "impossible-time"),
        ("2026-11-30T23:59:60+01:00", "impossible-time"),
        ("2026-11-30T10:00:00+24:00", "impossible-time"),
        ("2026-11-30T10:00:00+00:60", "impossible-time"),
        ("2026-11-30T10:00:00.Z", "bad-time"),
        ("20261130T100000Z", "bad-time"),
        ("2026-11-30T10:00Z", "bad-time"),
        ("٢٠٢٦-11-30T10:00:00Z", "bad-time"),
        (" 2026-11-30T10:00:00Z", "bad-time"),
        ("", "bad-time"),
        ("1718000000000", "bad-time"),
        (-1, "impossible-time"),
        (LAST_MS * 1.01, "impossible-time"),
        (float("nan"), "impossible-time"),
        (float("inf"), "impossible-time"),
        pytest.param(10**400, "impossible-time", id="huge"),
        (True, "bad-time"),
        (None, "bad-time"),
        ([0], "bad-time"),
    ],
)
def test_what_is_no_time_is_refused_by_name(value: object, reason: str) -> None:
    with pytest.raises(BadTime) as refusal:
        read_instant(value)
    assert refusal.value.reason == reason


@given(st.one_of(st.text(), st.floats(), st.integers(), st.none(), st.lists(st.integers())))
def test_anything_is_either_a_time_in_range_or_refused(value: object) -> None:
    try:
        found = read_instant(value)
    except BadTime:
        return
    assert 0 <= found.ms <= LAST_MS
