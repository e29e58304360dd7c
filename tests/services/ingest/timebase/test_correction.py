from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.ingest.timebase.correction import NO_CORRECTION, Correction, Piece
from services.ingest.timebase.ticks import NS_PER_MS, NS_PER_S

MS = NS_PER_MS
OFFSETS = st.integers(-400 * MS, 400 * MS)


@given(st.integers(0, 10**13))
def test_no_correction_moves_nothing(ts_ns: int) -> None:
    assert NO_CORRECTION.apply(ts_ns) == ts_ns == NO_CORRECTION.source_of(ts_ns)


@given(OFFSETS, st.integers(0, 10**13))
def test_what_lags_is_moved_back_by_its_lag(offset: int, ts_ns: int) -> None:
    moved = Correction((Piece(0, offset),))
    assert moved.apply(ts_ns) == ts_ns + offset
    assert moved.source_of(ts_ns + offset) == ts_ns


@given(OFFSETS, st.integers(-2_000_000, 2_000_000), st.integers(0, 8 * 3600 * NS_PER_S))
def test_the_way_back_from_a_drift_is_exact_to_a_microsecond(
    offset: int, rate: int, ts_ns: int
) -> None:
    moved = Correction((Piece(0, offset, rate),))
    common = moved.apply(ts_ns)
    assert common is not None
    assert abs(moved.source_of(common) - ts_ns) <= 150_000  # 2 ppt of 2 ppt of eight hours


@given(OFFSETS, OFFSETS, st.lists(st.integers(0, 20_000), min_size=2, max_size=60))
def test_across_a_step_items_stay_in_order_and_what_fills_a_stall_is_left_out(
    first: int, second: int, times_ms: list[int]
) -> None:
    step = 10 * NS_PER_S
    moved = Correction((Piece(-first, first), Piece(step - second, second)))
    placed = [moved.apply(ts * MS) for ts in sorted(times_ms)]
    kept = [ts for ts in placed if ts is not None]
    assert kept == sorted(kept)
    left_out = [ts for ts, at in zip(sorted(times_ms), placed, strict=True) if at is None]
    assert all(step - first <= ts * MS < step - second for ts in left_out)
