from __future__ import annotations

import numpy as np
import pytest

from services.preprocess.log_mel import HOP, WINDOW, log_mel, make_log_mel, mel_filters
from tests.services.preprocess.samples import tone
from validators.contracts.encoder import PreprocessSpec
from validators.contracts.errors import BadInput, TooLarge


def slow_log_mel(samples: np.ndarray, mels: int) -> np.ndarray:
    """The definition, spelled out: one window, one Fourier sum, one filter at a time."""
    padded = np.concatenate([samples[200:0:-1], samples, samples[-2:-202:-1]]).astype(np.float64)
    times = np.arange(WINDOW)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * times / WINDOW)
    waves = np.exp(-2j * np.pi * np.outer(np.arange(WINDOW // 2 + 1), times) / WINDOW)
    columns = []
    for start in range(0, len(samples) // HOP * HOP, HOP):
        power = np.abs(waves @ (padded[start : start + WINDOW] * window)) ** 2
        columns.append([np.log10(max(1e-10, float(f @ power))) for f in mel_filters(mels)])
    decades = np.array(columns).T
    return (np.maximum(decades, decades.max() - 8) + 4) / 4


def test_it_agrees_with_the_definition_spelled_out() -> None:
    samples = tone(seconds=0.3) + np.random.default_rng(0).normal(0, 0.01, 4800).astype(np.float32)
    np.testing.assert_allclose(log_mel(samples, 80), slow_log_mel(samples, 80), atol=2e-4)


def test_each_filter_has_unit_area_in_hertz() -> None:
    wide = mel_filters(80)[40:]  # narrow ones fall between the bins
    np.testing.assert_allclose(wide.sum(1) * (16_000 / WINDOW), 1.0, rtol=0.1)


def test_filters_are_made_once_and_cannot_be_changed() -> None:
    assert mel_filters(80) is mel_filters(80)
    with pytest.raises(ValueError, match="read-only"):
        mel_filters(80)[0, 0] = 1


def test_a_tone_lights_up_the_filter_of_its_pitch() -> None:
    for hz in (300, 1000, 4000):
        spectrum = log_mel(tone(hz=hz, seconds=1))
        loudest = mel_filters(80)[spectrum.mean(1).argmax()]
        assert abs(loudest.argmax() * 40 - hz) <= 120


def test_short_speech_is_padded_to_the_declared_seconds() -> None:
    preprocess = make_log_mel(PreprocessSpec("log_mel", (("seconds", 3),)), lambda _: b"")
    mel = preprocess(tone(seconds=1))["mel"]
    assert mel.shape == (1, 80, 300)
    assert mel[0, :, 200:].max() == mel.min()


def test_long_speech_is_refused_or_cut_as_declared() -> None:
    refusing = make_log_mel(PreprocessSpec("log_mel", (("seconds", 1),)), lambda _: b"")
    with pytest.raises(TooLarge, match="hears 1 s"):
        refusing(tone(seconds=2))
    options = (("longer", "cut"), ("seconds", 1))
    cutting = make_log_mel(PreprocessSpec("log_mel", options), lambda _: b"")
    assert cutting(tone(seconds=2))["mel"].shape == (1, 80, 100)


@pytest.mark.parametrize(
    "raw",
    ["text", np.zeros(0, np.float32), np.zeros((2, 9), np.float32), np.zeros(9, np.float64),
     np.full(9, np.nan, np.float32)],
)  # fmt: skip
def test_what_is_no_recording_is_refused(raw: object) -> None:
    with pytest.raises(BadInput):
        make_log_mel(PreprocessSpec("log_mel"), lambda _: b"")(raw)
