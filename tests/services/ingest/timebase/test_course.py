from __future__ import annotations

import numpy as np
import pytest

from services.ingest.timebase.activity import BIN_NS
from services.ingest.timebase.correlation import observe
from services.ingest.timebase.course import Drift, Stretch, follow
from services.ingest.timebase.ticks import NS_PER_MS
from tests.services.ingest.timebase.scenes import courses, scene

HALF_FRAME = 16_666_667


@pytest.mark.parametrize("lag_ms", [128, -42, 0, 350])
@pytest.mark.parametrize("seed", range(4))
def test_a_lag_and_a_lead_are_seen_with_sign_and_size(seed: int, lag_ms: int) -> None:
    found = observe(*courses(scene(seed, 60, lag=lambda at: at * 0 + lag_ms / 1000), 60),
                    resolution_ns=HALF_FRAME)  # fmt: skip
    assert found
    assert abs(found.offset_ns + lag_ms * NS_PER_MS) <= found.within_ns
    assert found.within_ns <= 45 * NS_PER_MS


def test_unrelated_tracks_are_not_told_an_offset() -> None:
    told = sum(
        observe(*courses(scene(seed, 40, related=False), 40)) is not None for seed in range(200)
    )
    assert told <= 3  # 0.2 % expected: three of 200 have a chance of 1 in 100


def test_a_rhythm_that_repeats_itself_tells_nothing() -> None:
    beats = np.arange(0.25, 60, 0.5)
    from tests.services.ingest.timebase.scenes import audio_of, video_of

    rng = np.random.default_rng(3)
    even = np.ones(len(beats))
    pair = video_of(rng, beats, even, 60), audio_of(rng, beats + 0.128, even, 60)
    assert observe(*courses(pair, 60)) is None


def test_nothing_going_on_and_too_short_a_recording_tell_nothing() -> None:
    silence = np.zeros(6000)
    assert observe(silence, silence) is None
    assert follow(silence, silence) == ()
    assert observe(*courses(scene(1, 8), 8)) is None


@pytest.mark.parametrize("seed", range(3))
def test_a_lag_that_begins_in_the_middle_is_located(seed: int) -> None:
    pair = scene(seed, 120, lag=lambda at: np.where(at >= 60, 0.128, 0.0), rate_hz=2)
    found = follow(*courses(pair, 120), resolution_ns=HALF_FRAME)
    assert isinstance(found, tuple)
    before, after = found
    assert abs(before.seen.offset_ns) <= before.seen.within_ns
    assert abs(after.seen.offset_ns + 128 * NS_PER_MS) <= after.seen.within_ns
    assert after.start_low * BIN_NS <= 61e9
    assert after.start_high * BIN_NS >= 59e9
    assert abs(after.start * BIN_NS - 60e9) < 3e9


def test_a_clock_that_runs_slow_is_a_drift_and_not_a_staircase() -> None:
    found = follow(*courses(scene(5, 600, lag=lambda at: at * 300e-6), 600),
                   resolution_ns=HALF_FRAME)  # fmt: skip
    assert isinstance(found, Drift)
    assert found.rate_ppb == pytest.approx(-300_000, abs=30_000)
    assert abs(found.offset_ns) <= 25 * NS_PER_MS


@pytest.mark.parametrize("seed", range(6))
def test_a_steady_lag_is_one_stretch(seed: int) -> None:
    found = follow(*courses(scene(seed, 180, lag=lambda at: at * 0 + 0.1), 180),
                   resolution_ns=HALF_FRAME)  # fmt: skip
    assert isinstance(found, tuple)
    (stretch,) = found
    assert isinstance(stretch, Stretch)
    assert (stretch.start, stretch.end) == (0, 18_000)
