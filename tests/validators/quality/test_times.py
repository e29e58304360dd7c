from __future__ import annotations

import math

import pytest

from tests.validators.quality.rows import dataset, row
from validators.contracts.quality import Consequence, TimeRules
from validators.contracts.verdict import Outcome
from validators.quality.times import from_the_future, judge_times

RULES = TimeRules()
NOW_MS = 1_700_000_000_000.0
DAY_MS = 86_400_000.0


def timed(*times: float | None, recording: str = "walk") -> list[str]:
    """The codes found for one recording with these times."""
    samples = [
        row(f"f-{at}", captured_ms=value, recording=recording) for at, value in enumerate(times)
    ]
    return [item.code for item in judge_times(dataset(*samples), RULES)]


@pytest.mark.parametrize(
    ("times", "codes"),
    [
        ((0.0, 1.0, 2.0), []),
        ((None, None), []),
        ((5.0,), []),
        ((-1.0, 0.0), ["time-negative"]),
        ((math.nan, 1.0), ["time-not-finite"]),
        ((math.inf, 1.0), ["time-not-finite"]),
        ((-math.inf, 1.0), ["time-not-finite"]),
        ((1.0, 1.0, 2.0), ["time-repeated"]),
        ((1.0, 3.0, 2.0), ["time-not-rising"]),
        ((1.0, None, 0.5), ["time-not-rising"]),
        ((3600e3, 0.0, 1.0), ["time-not-rising"]),  # a time zone that jumps back
    ],
)
def test_what_a_recording_s_times_may_not_do(
    times: tuple[float | None, ...], codes: list[str]
) -> None:
    assert timed(*times) == codes


def test_samples_are_in_the_order_that_people_count_them() -> None:
    samples = [row(f"f-{at}", captured_ms=float(at), recording="walk") for at in range(12)]
    assert list(judge_times(dataset(*samples), RULES)) == []


def test_two_recordings_have_nothing_to_do_with_each_other() -> None:
    samples = [row("a1", captured_ms=9.0, recording="a"), row("b1", captured_ms=1.0, recording="b")]
    assert list(judge_times(dataset(*samples), RULES)) == []
    assert timed(9.0, 1.0, recording="") == []  # no recording: no order


@pytest.mark.parametrize(
    ("ahead_ms", "found"), [(0.0, ()), (DAY_MS, ()), (DAY_MS + 1, ("late",)), (1e14, ("late",))]
)
def test_a_time_ahead_of_the_clock_is_found_apart(ahead_ms: float, found: tuple[str, ...]) -> None:
    data = dataset(row("late", captured_ms=NOW_MS + ahead_ms), row("none"))
    assert from_the_future(data, RULES, NOW_MS) == found
    codes = [item.code for item in judge_times(data, RULES, found)]
    assert codes == (["time-in-future"] if found else [])


@pytest.mark.parametrize(
    ("consequence", "outcome"), [(Consequence.WARN, Outcome.WARN), (Consequence.FAIL, Outcome.FAIL)]
)
def test_the_file_says_what_an_impossible_time_does(
    consequence: Consequence, outcome: Outcome
) -> None:
    data = dataset(row("a", captured_ms=-5.0))
    (found,) = judge_times(data, TimeRules(impossible=consequence))
    assert found.outcome is outcome
    assert list(judge_times(data, TimeRules(impossible=Consequence.OFF))) == []


def test_an_id_with_a_superscript_is_no_number() -> None:
    assert timed() == []
    samples = [row(f"m²{at}", captured_ms=1.0, recording="r") for at in range(2)]
    assert [item.code for item in judge_times(dataset(*samples), RULES)] == ["time-repeated"]
