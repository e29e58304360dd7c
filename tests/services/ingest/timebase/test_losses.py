from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.timebase.losses import MAX_OPEN, Loss, LossFinder, Moment


def moments(offsets: Iterable[float | None], **more: bool) -> list[Moment]:
    return [
        Moment("clip", "audio", number, number * 40.0, offset, 40.0, **more)
        for number, offset in enumerate(offsets)
    ]


def losses(found: Iterable[Moment]) -> list[Loss]:
    finder = LossFinder()
    return [loss for moment in found for loss in finder.add(moment)] + list(finder.finish())


@pytest.mark.parametrize(
    ("offsets", "first", "last", "shape"),
    [
        ([-128.0] * 50, 0, 49, "start-offset"),
        ([0.0] * 20 + [-128.0] * 30, 20, 49, "step"),
        ([0.0] * 20 + [-128.0] * 10 + [0.0] * 20, 20, 29, "step"),
        ([-2.0 * i for i in range(60)], 21, 59, "clock-rate"),
        ([42.0] * 9, 0, 8, "start-offset"),
        ([0.0] * 5 + [90.0, 0.0, 90.0, 0.0, 90.0] + [0.0] * 9, 5, 9, "step"),
    ],
)
def test_a_loss_has_its_first_and_last_tick_and_a_shape(
    offsets: list[float], first: int, last: int, shape: str
) -> None:
    (loss,) = losses(moments(offsets))
    assert (loss.first_tick, loss.from_ms, loss.until_ms) == (first, first * 40.0, last * 40.0)
    assert (loss.kind, loss.shape, loss.at_end) == ("offset", shape, last == len(offsets) - 1)


def test_a_drift_says_how_fast_it_grows() -> None:
    (loss,) = losses(moments([-0.004 * 40 * i for i in range(1000)]))
    assert loss.rate_ppm == pytest.approx(-4000)


def test_nothing_there_is_a_gap() -> None:
    (loss,) = losses(moments([None] * 4, absent=True))
    assert (loss.kind, loss.shape, loss.worst_ms) == ("gap", "gap", None)


@given(st.lists(st.floats(-40, 40) | st.none(), max_size=80))
def test_what_is_within_its_tolerance_or_not_observed_is_no_loss(
    offsets: list[float | None],
) -> None:
    assert losses(moments(offsets)) == []


@given(st.lists(st.sampled_from([0.0, 100.0, -100.0, None]), max_size=120))
def test_losses_come_in_order_do_not_overlap_and_cover_all_that_is_off(
    offsets: list[float | None],
) -> None:
    found = losses(moments(offsets))
    ends = [-1.0]
    for loss in found:
        assert ends[-1] < loss.from_ms <= loss.until_ms
        ends.append(loss.until_ms)
    off = sum(offset is not None and abs(offset) > 40 for offset in offsets)
    assert sum(loss.ticks for loss in found) == off


def test_memory_does_not_grow_with_the_inputs() -> None:
    finder = LossFinder()
    ended = 0
    for number in range(MAX_OPEN + 500):
        found = finder.add(Moment(f"clip-{number}", "audio", 0, 0.0, -99.0, 40.0))
        ended += len(list(found))
    assert ended == 500
    assert len(list(finder.finish())) == MAX_OPEN
