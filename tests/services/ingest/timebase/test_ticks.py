from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from services.ingest.timebase.ticks import NS_PER_S, Ticks, ticks_over

RATES = st.builds(Fraction, st.integers(1, 60_000), st.sampled_from([1, 1001, 7, 1000]))
HOURS = 24 * 3600 * NS_PER_S


@given(RATES, st.integers(0, 10_000_000), st.integers(0, HOURS))
def test_no_tick_is_off_by_more_than_half_a_nanosecond(
    rate: Fraction, index: int, start_ns: int
) -> None:
    exact = start_ns + Fraction(index) / rate * NS_PER_S
    assert abs(Ticks(rate, index + 1, start_ns).at(index) - exact) <= Fraction(1, 2)


@given(st.integers(1, 240), st.integers(0, 48))
def test_whole_rates_meet_every_hour_to_the_nanosecond(rate: int, hours: int) -> None:
    ticks = Ticks(Fraction(rate), rate * 3600 * hours + 1)
    assert ticks.at(rate * 3600 * hours) == hours * 3600 * NS_PER_S


@given(RATES.filter(lambda rate: rate < 2000), st.integers(0, 10 * NS_PER_S), st.integers(0, 10**9))
def test_ticks_cover_a_span_and_do_not_leave_it(rate: Fraction, span: int, start: int) -> None:
    ticks = ticks_over(rate, start, start + span)
    assert ticks.at(0) == start
    assert ticks.at(ticks.count - 1) <= start + span + 1
    assert ticks.at(ticks.count) >= start + span


@given(RATES.filter(lambda rate: rate < 2000), st.integers(-100, 2 * NS_PER_S))
def test_the_first_tick_from_a_moment_is_found(rate: Fraction, ts_ns: int) -> None:
    ticks = ticks_over(rate, 0, NS_PER_S)
    found = ticks.first_from(ts_ns)
    assert found == next((i for i, at in enumerate(ticks) if at >= ts_ns), ticks.count)
