from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.validators.drift.windows import make_window
from validators.contracts.verdict import Outcome, Verdict
from validators.drift.gate import assess_drift
from validators.drift.settings import MAX_SLICES, DriftSettings
from validators.drift.window import DriftWindow

CAMERAS = 8
BARE = DriftSettings(
    false_alarm_rate=0.05, scalar_effect=0.0, vector_effect=0.0, category_effect=0.0
)


def window(seed: int, rows: int = 800, darker: int | None = None) -> DriftWindow:
    """Pictures of eight cameras; one of them may have become darker."""
    generator = np.random.default_rng(seed)
    camera = generator.integers(0, CAMERAS, size=rows)
    brightness = generator.normal(120, 20, size=rows) - np.where(camera == darker, 30, 0)
    vectors = generator.normal(size=(rows, 12))
    return make_window(
        {"image.brightness": brightness},
        {"image": vectors},
        tags={
            "sensor": [f"camera {place}" for place in camera],
            "lighting": [("day", "night")[row % 2] for row in range(rows)],
        },
    )


def failed(verdict: Verdict) -> set[str]:
    return {item.subject for item in verdict.findings if item.outcome is Outcome.FAIL}


def test_drift_in_one_camera_names_that_camera() -> None:
    verdict = assess_drift(window(1), window(2, darker=3))
    assert failed(verdict) == {"sensor=camera 3/image.brightness"}


def test_slices_that_did_not_change_pass() -> None:
    verdict = assess_drift(window(3), window(4))
    assert verdict.outcome is Outcome.PASS
    assert dict(verdict.metrics)["slices"] == CAMERAS + 2


def test_another_mix_of_slices_is_drift_of_the_tag_and_not_within_its_slices() -> None:
    day = make_window({"x": np.random.default_rng(5).normal(size=400)},
                      tags={"lighting": ["day"] * 300 + ["night"] * 100})  # fmt: skip
    night = make_window({"x": np.random.default_rng(6).normal(size=400)},
                        tags={"lighting": ["day"] * 100 + ["night"] * 300})  # fmt: skip
    assert failed(assess_drift(day, night)) == {"tag.lighting"}


def test_small_slices_are_not_tested_and_no_more_than_the_largest_ones() -> None:
    generator = np.random.default_rng(7)
    words = [f"w{place % 40}" for place in range(40 * 30)] + ["rare"] * 5
    windows = [
        make_window({"x": generator.normal(size=len(words))}, tags={"source": words})
        for _ in range(2)
    ]
    assert dict(assess_drift(*windows).metrics)["slices"] == MAX_SLICES


def test_a_tag_of_one_word_makes_no_slices() -> None:
    windows = [make_window({"x": np.arange(90.0)}, tags={"source": ["studio"] * 90})] * 2
    assert dict(assess_drift(*windows).metrics)["slices"] == 0


@pytest.mark.heavy
def test_slices_and_features_together_alarm_no_more_often_than_promised() -> None:
    alarms = sum(
        assess_drift(window(2 * seed, 300), window(2 * seed + 1, 300), BARE).outcome is Outcome.FAIL
        for seed in range(400)
    )
    assert alarms <= stats.binom.ppf(1 - 1e-4, 400, BARE.false_alarm_rate)


def test_a_tag_of_one_window_alone_is_said_and_decides_nothing() -> None:
    values = {"x": np.random.default_rng(9).normal(size=400)}
    tagged = make_window(values, tags={"weather": ["rain", "sun"] * 200})
    verdict = assess_drift(make_window(values), tagged)
    assert verdict.outcome is Outcome.WARN
    assert [item.name for item in verdict.findings] == ["drift/tag-missing/tag.weather"]
