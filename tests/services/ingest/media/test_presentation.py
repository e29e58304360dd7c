from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.media.anomalies import AnomalyLog
from services.ingest.media.presentation import PresentationOrder

MS = Fraction(1, 1000)


def run(
    times: list[int | None], *, depth: int = 16, reached: list[int | None] | None = None
) -> tuple[list[tuple[int, int]], AnomalyLog]:
    log = AnomalyLog()
    order = PresentationOrder[int](log, MS, Fraction(40), depth)
    given_out: list[tuple[int, int]] = []
    for number, ticks in enumerate(times):
        given_out += order.offer(ticks, number, reached[number] if reached else None)
    given_out += order.finish()
    return given_out, log


@given(st.lists(st.one_of(st.none(), st.integers(-500, 500)), max_size=40), st.integers(1, 16))
def test_what_comes_out_rises_strictly_and_nothing_vanishes_unreported(
    times: list[int | None], depth: int
) -> None:
    out, log = run(times, depth=depth)
    stamps = [ticks for ticks, _ in out]
    assert stamps == sorted(set(stamps))
    counts = dict(log.counts)
    left_out = counts.get("duplicate-timestamp", 0) + counts.get("late-frame", 0)
    assert len(out) + left_out == len(times)
    assert counts.get("missing-timestamp", 0) == times.count(None)


@given(st.permutations(list(range(0, 400, 40))))
def test_any_order_within_the_depth_is_put_right(times: list[int]) -> None:
    out, _ = run(list(times))
    assert out == sorted((ticks, number) for number, ticks in enumerate(times))


def test_a_frame_leaves_once_decoding_has_gone_beyond_it() -> None:
    order = PresentationOrder[str](AnomalyLog(), MS, None)
    assert list(order.offer(0, "a", -40)) == []
    assert list(order.offer(40, "b", 0)) == []
    assert list(order.offer(80, "c", 41)) == [(0, "a"), (40, "b")]
    assert list(order.finish()) == [(80, "c")]


def test_a_frame_that_belongs_before_what_was_given_out_is_left_out_and_reported() -> None:
    out, log = run([0, 40, 80, 20], reached=[0, 40, 80, 100])
    assert [ticks for ticks, _ in out] == [0, 40, 80]
    assert [(found.code, found.index, found.ts_ms) for found in log.kept] == [
        ("late-frame", 3, 20.0)
    ]


def test_a_frame_without_a_time_follows_the_one_before_by_the_period() -> None:
    out, log = run([0, None, None, 120])
    assert [ticks for ticks, _ in out] == [0, 40, 80, 120]
    assert log.counts == (("missing-timestamp", 2),)


def test_without_a_time_and_without_a_period_there_is_no_guess() -> None:
    order = PresentationOrder[int](AnomalyLog(), MS, None)
    with pytest.raises(ValueError, match="without a rate"):
        list(order.offer(None, 0, None))
