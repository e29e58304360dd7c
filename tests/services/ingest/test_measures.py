from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.measures import SILENCE_DB, measure_audio, measure_image, measure_text
from tests.services.media_files import tone


def test_a_flat_picture_has_brightness_and_nothing_else() -> None:
    found = dict(measure_image(np.full((20, 30, 3), 142, dtype=np.uint8)))
    assert found == {
        "width_px": 30, "height_px": 20, "brightness": pytest.approx(142), "contrast": 0,
        "saturation": 0, "sharpness": 0,
    }  # fmt: skip


def test_an_edge_is_contrast_and_sharpness() -> None:
    pixels = np.zeros((20, 20, 3), dtype=np.uint8)
    pixels[:, 10:] = 255
    found = dict(measure_image(pixels))
    assert found["brightness"] == pytest.approx(127.5)
    assert found["contrast"] == pytest.approx(127.5)
    assert found["sharpness"] > 1000


def test_a_tone_is_as_loud_and_as_long_as_it_is() -> None:
    found = dict(measure_audio(tone(0.5, hz=400), 16_000))
    assert found["duration_ms"] == 500
    assert found["rms_db"] == pytest.approx(20 * np.log10(0.3 / np.sqrt(2)), abs=0.01)
    assert found["zero_crossings_hz"] == pytest.approx(800, abs=5)
    assert found["clipped_share"] == 0


def test_silence_has_a_level_and_clipping_has_a_share() -> None:
    assert dict(measure_audio(np.zeros(100, np.float32), 16_000))["rms_db"] == SILENCE_DB
    half = np.tile(np.array([1.0, 0.0], np.float32), 50)
    assert dict(measure_audio(half, 16_000))["clipped_share"] == 0.5


@pytest.mark.parametrize(
    ("text", "words", "foreign"),
    [("a sleeping cat", 3, 0), ("一只猫", 1, 1), ("caf\u00e9 猫", 2, 0.2)],
)
def test_a_text_is_counted(text: str, words: int, foreign: float) -> None:
    found = dict(measure_text(text))
    assert found["characters"] == len(text)
    assert found["words"] == words
    assert found["non_latin_share"] == pytest.approx(foreign)


@given(st.text(max_size=40))
def test_measures_are_finite_and_sorted(text: str) -> None:
    measures = measure_text(text)
    assert list(measures) == sorted(measures)
    assert all(np.isfinite(value) for _, value in measures)
