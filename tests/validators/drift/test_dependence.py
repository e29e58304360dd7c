from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy import signal, stats

from tests.validators.drift.windows import make_window
from validators.contracts.verdict import Outcome
from validators.drift.dependence import correlation_time, find_dependence
from validators.drift.gate import assess_drift
from validators.drift.settings import DriftSettings
from validators.drift.window import DriftWindow

# No floor under the effect: what is measured is the test alone.
BARE = DriftSettings(
    false_alarm_rate=0.05, scalar_effect=0.0, vector_effect=0.0, minimum_samples=10
)


def autoregressive(seed: int, rows: int, factor: float, columns: int) -> npt.NDArray[np.float64]:
    """x[t] = factor x[t-1] + noise, of variance 1."""
    noise = np.random.default_rng(seed).normal(size=(rows + 300, columns))
    scale = [np.sqrt(1 - factor**2)]
    return np.asarray(signal.lfilter(scale, [1, -factor], noise, axis=0))[300:]


def video(seed: int, rows: int, factor: float) -> DriftWindow:
    values = autoregressive(seed, rows, factor, 8)
    return make_window(
        {f"x{place}": values[:, place] for place in range(3)},
        {"image": values[:, 3:]},
        times_ms=np.arange(rows) * 40,
    )


@pytest.mark.parametrize(("factor", "low", "high"), [(0.0, 1, 1), (0.5, 2.2, 5), (0.9, 12, 32)])
def test_the_correlation_time_is_found(factor: float, low: float, high: float) -> None:
    assert low <= correlation_time(video(1, 3000, factor)) <= high  # (1 + f) / (1 - f)


def test_rows_without_times_are_taken_as_independent() -> None:
    values = autoregressive(2, 400, 0.9, 1)[:, 0]
    assert find_dependence(*[make_window({"x": values})] * 2).reason == "none"


def test_neighbours_that_are_alike_move_in_blocks() -> None:
    found = find_dependence(video(3, 1000, 0.9), video(4, 1000, 0.9))
    assert found.reason == "time"
    assert 20 < found.current.worth < 120
    assert found.units.current < 40
    blocks = found.units.unit[:1000]
    assert (np.diff(blocks) >= 0).all()


def test_rows_of_one_recording_move_together() -> None:
    recordings = np.repeat(np.arange(40), 10).astype(np.int32)
    windows = [
        make_window({"x": np.random.default_rng(seed).normal(size=400)}, recordings=recordings)
        for seed in (1, 2)
    ]
    found = find_dependence(*windows)
    assert (found.reason, found.units.reference, found.units.current) == ("recordings", 40, 40)


def test_natural_repetitions_of_few_values_are_no_repeated_rows() -> None:
    generator = np.random.default_rng(5)
    windows = [make_window({"count": generator.poisson(3, size=300)}) for _ in range(2)]
    assert find_dependence(*windows).reason == "none"


def test_three_recordings_decide_nothing_however_long_they_are() -> None:
    recordings = np.repeat(np.arange(3), 200).astype(np.int32)
    windows = [
        make_window({"x": np.random.default_rng(seed).normal(size=600)}, recordings=recordings)
        for seed in (1, 2)
    ]
    verdict = assess_drift(*windows)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert {item.code for item in verdict.findings} == {"too-few-independent"}


def alarms(windows: int, rows: int, factor: float) -> int:
    return sum(
        assess_drift(video(2 * seed, rows, factor), video(2 * seed + 1, rows, factor), BARE).outcome
        is Outcome.FAIL
        for seed in range(windows)
    )


@pytest.mark.slow
def test_video_alarms_no_more_often_than_promised() -> None:
    assert alarms(20, 500, 0.8) <= stats.binom.ppf(1 - 1e-4, 20, BARE.false_alarm_rate)


@pytest.mark.heavy
@pytest.mark.parametrize(("rows", "factor"), [(300, 0.3), (500, 0.8), (1500, 0.95)])
def test_video_alarms_no_more_often_than_promised_over_many_windows(
    rows: int, factor: float
) -> None:
    assert alarms(400, rows, factor) <= stats.binom.ppf(1 - 1e-4, 400, BARE.false_alarm_rate)


def test_a_video_that_changed_is_still_seen() -> None:
    darker = video(6, 1500, 0.8)
    moved = make_window(
        {name: column.values - 1.5 for name, column in darker.descriptors.items()},
        {"image": darker.embeddings["image"]},
        times_ms=darker.times_ms,
    )
    verdict = assess_drift(video(7, 1500, 0.8), moved)
    assert {item.subject for item in verdict.findings} == {"x0", "x1", "x2"}
