from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.timebase.stamps import fit_rate, read_stamps
from services.ingest.timebase.ticks import NS_PER_MS

PERIOD = 10 * NS_PER_MS


def steady(count: int, ppm: float = 0.0, jitter_ms: float = 0.0, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    times = np.arange(count) * PERIOD * (1 + ppm * 1e-6)
    return np.sort(np.rint(times + rng.normal(0, jitter_ms * NS_PER_MS, count)).astype(np.int64))


@pytest.mark.parametrize("ppm", [-400.0, -20.0, 35.0, 1000.0])
def test_a_clock_that_is_off_is_seen_through_jitter_and_holes(ppm: float) -> None:
    times = steady(60_000, ppm, jitter_ms=1.5)
    times = np.delete(times, np.r_[1000:1100, 30_000:30_007])
    rate = fit_rate(times, PERIOD)
    assert rate is not None
    assert rate.certain
    assert rate.ppb == pytest.approx(ppm * 1000, abs=2000)
    assert rate.low_ppb <= rate.ppb <= rate.high_ppb


def test_another_nominal_rate_is_no_bad_clock() -> None:
    assert fit_rate(steady(1000), PERIOD * 12 // 10) is None
    assert fit_rate(steady(20), PERIOD) is None


def test_a_hole_is_named_with_its_ends_and_how_many_are_missing() -> None:
    facts = read_stamps(np.delete(steady(500), slice(100, 113)), PERIOD)
    assert facts
    (hole,) = facts.holes
    assert (hole.missing, hole.late) == (13, 0)
    assert (hole.from_ns, hole.until_ns) == (100 * PERIOD, 113 * PERIOD)


def test_items_that_come_all_at_once_behind_a_hole_are_a_burst() -> None:
    times = steady(500)
    times[100:113] = 113 * PERIOD + np.arange(13) * 1000
    facts = read_stamps(np.sort(times), PERIOD)
    assert facts
    (hole,) = facts.holes
    assert hole.missing == 13
    assert hole.late == 13


def test_disorder_is_counted_and_its_first_item_named() -> None:
    times = steady(100)
    times[[40, 42]] = times[[42, 40]]
    facts = read_stamps(times, PERIOD)
    assert facts
    assert (facts.reordered, facts.first_reordered) == (2, 41)
    assert facts.holes == ()


def test_a_track_without_items_has_no_facts() -> None:
    assert read_stamps(np.zeros(0, np.int64), PERIOD) is None


@given(st.integers(51, 400), st.integers(0, 2**31), st.integers(-(10**12), 10**12))
def test_an_even_track_has_nothing_to_say_wherever_it_begins(
    count: int, seed: int, start: int
) -> None:
    facts = read_stamps(start + steady(count), PERIOD)
    assert facts
    assert (facts.holes, facts.reordered, facts.first_ns) == ((), 0, start)
    assert facts.rate is None or not facts.rate.certain
