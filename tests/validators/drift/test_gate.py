from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.validators.drift.windows import make_window
from validators.contracts.verdict import Outcome
from validators.drift.gate import DriftSettings, assess_drift
from validators.drift.window import DriftWindow

FAST = DriftSettings(false_alarm_rate=0.05)
# No floor under the effect: what is measured is the test and its multiplicity control alone.
BARE = DriftSettings(false_alarm_rate=0.05, scalar_effect=0.0, vector_effect=0.0)


def window(
    generator: np.random.Generator, size: int, *, shift: float = 0.0, features: int = 4
) -> DriftWindow:
    """Correlated features, one of them of few values, and a 16-dimensional embedding."""
    common = generator.normal(size=size)
    descriptors = {
        f"f{index}": common + generator.normal(size=size) + (shift if index == 0 else 0)
        for index in range(features)
    }
    descriptors["count"] = generator.poisson(3, size=size).astype(np.float64)
    embedding = generator.normal(size=(size, 16)).astype(np.float32)
    embedding[:, 0] += shift
    return make_window(descriptors, {"image": embedding})


def false_alarms(windows: int, size: int) -> int:
    generator = np.random.default_rng(2024)
    return sum(
        assess_drift(window(generator, size), window(generator, size), BARE).outcome is Outcome.FAIL
        for _ in range(windows)
    )


def most_alarms(windows: int, rate: float) -> int:
    """As many as a rule with this rate gives in all but one of 10,000 such trials (binomial)."""
    return int(stats.binom.ppf(1 - 1e-4, windows, rate))


@pytest.mark.slow
def test_same_data_alarms_no_more_often_than_promised() -> None:
    assert false_alarms(120, 40) <= most_alarms(120, BARE.false_alarm_rate)


@pytest.mark.heavy
def test_same_data_alarms_no_more_often_than_promised_over_thousands_of_windows() -> None:
    assert false_alarms(2500, 40) <= most_alarms(2500, BARE.false_alarm_rate)


@pytest.mark.slow
def test_a_shift_is_seen_and_a_graded_one_more_often() -> None:
    generator = np.random.default_rng(7)
    power = [
        sum(
            assess_drift(window(generator, 100), window(generator, 100, shift=shift), FAST).outcome
            is Outcome.FAIL
            for _ in range(20)
        )
        for shift in (0.5, 1.0, 2.0)
    ]
    assert power == sorted(power)
    assert power[1] >= 14
    assert power[2] == 20


def test_the_drifted_feature_is_named_with_its_effect() -> None:
    generator = np.random.default_rng(8)
    verdict = assess_drift(window(generator, 200), window(generator, 200, shift=3), FAST)
    drifted = {item.subject: item for item in verdict.findings if item.code == "drifted"}
    assert verdict.outcome is Outcome.FAIL
    assert set(drifted) == {"f0", "embedding.image"}
    assert float(drifted["f0"].measured) > FAST.scalar_effect


def test_a_tiny_shift_in_a_huge_window_is_no_drift() -> None:
    generator = np.random.default_rng(9)
    reference = make_window({"x": generator.normal(size=20_000)})
    current = make_window({"x": generator.normal(0.1, size=20_000)})
    settings = DriftSettings(maximum_samples=20_000, false_alarm_rate=0.05)
    verdict = assess_drift(reference, current, settings)
    assert dict(verdict.metrics)["p.x"] < 0.05
    assert verdict.outcome is Outcome.PASS


def test_too_few_samples_decide_nothing() -> None:
    generator = np.random.default_rng(10)
    verdict = assess_drift(window(generator, 200), window(generator, 29, shift=9), FAST)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert {item.code for item in verdict.findings} == {"too-few-samples"}


def test_a_feature_of_one_value_passes_without_a_test() -> None:
    constant = make_window({"presence.image": np.ones(50)})
    verdict = assess_drift(constant, constant, FAST)
    assert verdict.outcome is Outcome.PASS
    assert dict(verdict.metrics)["tested"] == 0


def test_a_feature_missing_on_one_side_is_inconclusive() -> None:
    one = make_window({"x": np.arange(50.0), "y": np.arange(50.0)})
    other = make_window({"x": np.arange(50.0)})
    for pair in ((one, other), (other, one)):
        verdict = assess_drift(*pair, FAST)
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert [item.subject for item in verdict.findings] == ["y"]


def test_embeddings_of_two_dimensions_are_an_error() -> None:
    one = make_window({}, {"image": np.zeros((50, 8), np.float32)})
    other = make_window({}, {"image": np.zeros((50, 9), np.float32)})
    assert assess_drift(one, other, FAST).outcome is Outcome.ERROR


def test_an_empty_window_is_inconclusive() -> None:
    assert assess_drift(DriftWindow(0), DriftWindow(0), FAST).outcome is Outcome.INCONCLUSIVE


def test_the_first_release_warns_and_checks_its_own_halves() -> None:
    verdict = assess_drift(None, window(np.random.default_rng(11), 60), FAST)
    assert verdict.outcome is Outcome.WARN
    assert dict(verdict.metrics)["tested"] == 6


@pytest.mark.parametrize("period", [2, 4, 7])
def test_a_first_release_of_samples_that_take_turns_has_not_drifted(period: int) -> None:
    colour = np.arange(80) % period
    images = np.eye(16, dtype=np.float32)[colour]
    turns = make_window({"image.brightness": colour.astype(np.float64)}, {"image": images})
    verdict = assess_drift(None, turns, FAST)
    assert verdict.outcome is Outcome.WARN
    assert [item.code for item in verdict.findings] == ["first-release"]


def test_the_halves_follow_the_seed_and_keep_a_sample_together() -> None:
    values = np.arange(60.0)
    one = make_window({"x": values, "y": values}, {"image": values[:, None].astype(np.float32)})
    verdicts = [assess_drift(None, one, replace(FAST, seed=seed)) for seed in (3, 3, 4)]
    assert verdicts[0] == verdicts[1] != verdicts[2]
    effects = [dict(verdict.metrics) for verdict in verdicts]
    assert all(found["effect.x"] == found["effect.y"] for found in effects)


def test_a_first_release_of_too_few_samples_is_inconclusive() -> None:
    verdict = assess_drift(None, window(np.random.default_rng(12), 29), FAST)
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_a_champion_without_its_reference_is_inconclusive() -> None:
    current = window(np.random.default_rng(113), 60)
    verdict = assess_drift(None, current, FAST, champion_exists=True)
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_the_same_windows_give_the_same_verdict() -> None:
    windows = [window(np.random.default_rng(14), 60, shift=0.4) for _ in range(2)]
    assert assess_drift(*windows, FAST) == assess_drift(*windows, FAST)
