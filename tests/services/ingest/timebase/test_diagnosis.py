from __future__ import annotations

import numpy as np
import pytest

from services.ingest.timebase.diagnosis import Seen, diagnose, diagnose_reference
from services.ingest.timebase.ticks import NS_PER_MS, NS_PER_S
from tests.services.ingest.timebase.scenes import scene

MS = NS_PER_MS


def every(period_ms: float, seconds: float, start_ms: float = 0.0) -> np.ndarray:
    return np.rint((start_ms + period_ms * np.arange(seconds * 1000 / period_ms)) * MS).astype(
        np.int64
    )


FILM = Seen(every(1000 / 30, 60), round(1000 / 30 * MS))


@pytest.mark.parametrize("start_ms", [128.0, -42.0])
def test_a_late_start_is_a_lag_by_time_stamps_and_placed_without_being_moved(
    start_ms: float,
) -> None:
    found = diagnose(FILM, Seen(every(10, 60, start_ms), 10 * MS))
    assert found.observed_in == "timestamps"
    assert found.offset_at(30 * NS_PER_S) == -round(start_ms * MS)
    assert [cause.code for cause in found.causes] == ["start-offset"]
    assert found.correction.apply(5 * NS_PER_S) == 5 * NS_PER_S


def test_what_both_show_outweighs_a_late_start() -> None:
    film, sound = scene(2, 60)
    late = Seen(every(10, 60, 128), 10 * MS, sound)
    found = diagnose(Seen(FILM.times, FILM.period_ns, film), late)
    assert found.observed_in == "content"
    offset = found.offset_at(30 * NS_PER_S)
    assert offset is not None
    assert abs(offset) <= (found.within_ns or 0)
    assert found.causes == ()


def test_a_lag_in_content_is_repaired_by_moving_the_track() -> None:
    film, sound = scene(2, 60, lag=lambda at: at * 0 + 0.128)
    found = diagnose(Seen(FILM.times, FILM.period_ns, film), Seen(every(10, 60), 10 * MS, sound))
    (cause,) = found.causes
    assert (cause.code, cause.observed_in) == ("start-offset", "content")
    moved = found.correction.apply(30 * NS_PER_S + 128 * MS)
    assert moved is not None
    assert abs(moved - 30 * NS_PER_S) <= 25 * MS


def test_a_step_names_its_moment_and_the_hole_beside_it() -> None:
    film, sound = scene(1, 120, lag=lambda at: np.where(at >= 60, 0.128, 0.0), rate_hz=2)
    times = np.delete(every(10, 120), slice(6000, 6013))
    found = diagnose(Seen(every(1000 / 30, 120), 33_333_333, film), Seen(times, 10 * MS, sound))
    step = next(cause for cause in found.causes if cause.code == "step")
    assert abs(step.from_ns - 60 * NS_PER_S) < 3 * NS_PER_S
    if abs(step.from_ns - 60 * NS_PER_S) < NS_PER_S:
        assert dict(step.evidence)["missing"] == 13
    assert "gap" in {cause.code for cause in found.causes}
    before, after = found.offset_at(30 * NS_PER_S), found.offset_at(100 * NS_PER_S)
    assert before is not None and after is not None
    assert abs(before) < 25 * MS
    assert abs(after + 128 * MS) < 25 * MS


def test_a_clock_that_runs_slow_lags_more_and_more() -> None:
    hour = np.rint(np.arange(360_000) * 10 * MS * (1 + 100e-6)).astype(np.int64)
    found = diagnose(Seen(every(1000 / 30, 3600), 33_333_333), Seen(hour, 10 * MS))
    (cause,) = found.causes
    assert cause.code == "clock-rate"
    assert dict(cause.evidence)["ppm"] == pytest.approx(-100, abs=0.5)
    assert found.offset_at(3600 * NS_PER_S) == pytest.approx(-360 * MS, abs=2 * MS)


def test_messages_say_nothing_about_a_clock() -> None:
    found = diagnose(FILM, Seen(every(700, 30, 2500), None, shared_start=False))
    assert (found.offsets, found.observed_in, found.causes) == ((), "", ())


def test_a_track_that_begins_much_later_is_missing_and_not_late() -> None:
    found = diagnose(FILM, Seen(every(10, 30, 5000), 10 * MS))
    assert found.offsets == ()
    (cause,) = found.causes
    assert (cause.code, cause.until_ns) == ("gap", 5 * NS_PER_S)


def test_an_empty_track_has_no_offset() -> None:
    found = diagnose(FILM, Seen(np.zeros(0, np.int64), 10 * MS))
    assert (found.offsets, found.facts) == ((), None)


def test_the_reference_is_in_step_with_itself_and_has_its_own_holes() -> None:
    found = diagnose_reference(Seen(np.delete(FILM.times, slice(300, 310)), FILM.period_ns))
    assert found.offset_at(10 * NS_PER_S) == 0
    assert [cause.code for cause in found.causes] == ["gap"]
