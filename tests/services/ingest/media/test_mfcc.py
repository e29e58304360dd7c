from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal

from services.ingest.media.mfcc import MfccStream, mel_filters, mfcc_blocks


def reference(samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """The module's formula over the whole signal, written down another way: filter, frames one by
    one, a discrete Fourier sum, filters bin by bin, and the cosine transform as its definition."""
    emphasised = signal.lfilter([1, -0.97], [1], samples.astype(np.float64))
    padded = np.concatenate([np.zeros(200), emphasised, np.zeros(400)])
    times, bins = np.arange(400), np.arange(257)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * times / 400)
    fourier = np.exp(-2j * np.pi * np.outer(bins, times) / 512)

    def mel(hertz: float) -> float:
        return 2595 * math.log10(1 + hertz / 700)

    corners = [700 * (10 ** (mel(8000) * at / 41 / 2595) - 1) for at in range(42)]
    weights = np.zeros((40, 257))
    for row in range(40):
        low, middle, high = corners[row : row + 3]
        for at in range(257):
            hertz = at * 16000 / 512
            if low < hertz <= middle:
                weights[row, at] = (hertz - low) / (middle - low)
            elif middle < hertz < high:
                weights[row, at] = (high - hertz) / (high - middle)
    cosine = np.array(
        [[math.cos(math.pi * k * (2 * n + 1) / 80) for n in range(40)] for k in range(13)]
    ) * math.sqrt(2 / 40)
    cosine[0] /= math.sqrt(2)
    rows = []
    for start in range(0, len(samples), 160):
        spectrum = np.abs(fourier @ (padded[start : start + 400] * window)) ** 2 / 512
        rows.append(cosine @ np.log(np.maximum(weights @ spectrum, 1e-10)))
    return np.array(rows)


def streamed(samples: npt.NDArray[np.float32], block: int) -> npt.NDArray[np.float32]:
    parts = [samples[at : at + block] for at in range(0, len(samples), block)]
    return np.concatenate(list(mfcc_blocks(iter(parts))))


@pytest.mark.parametrize("block", [1, 159, 160, 1600, 100_000])
def test_frames_are_those_of_the_formula_whatever_the_blocks(block: int) -> None:
    random = np.random.default_rng(3)
    samples = (random.standard_normal(8_000) * 0.1).astype(np.float32)
    samples[3000:5000] = 0
    samples = samples[: 1_000 if block == 1 else None]
    expected = reference(samples)
    assert streamed(samples, block) == pytest.approx(expected, abs=1e-4)


@given(st.integers(1, 5_000), st.integers(1, 2_000))
@settings(deadline=None, max_examples=40)
def test_there_is_one_frame_for_each_ten_milliseconds_begun(length: int, block: int) -> None:
    assert streamed(np.ones(length, dtype=np.float32), block).shape == (math.ceil(length / 160), 13)


def test_a_click_is_in_the_frame_of_its_moment() -> None:
    samples = np.zeros(16_000, dtype=np.float32)
    samples[8_000] = 1  # 500 ms
    loudest = int(np.argmax(streamed(samples, 1000)[:, 0]))
    assert loudest == 50


def test_silence_is_finite_and_the_same_in_every_frame() -> None:
    frames = streamed(np.zeros(16_000, dtype=np.float32), 777)
    assert np.isfinite(frames).all()
    assert np.ptp(frames, axis=0).max() == 0
    assert frames[0, 0] == pytest.approx(math.sqrt(40) * math.log(1e-10))


def test_each_filter_rises_to_one_peak_and_falls() -> None:
    for row in mel_filters():
        peak = int(np.argmax(row))
        assert (np.diff(row[: peak + 1]) >= 0).all()
        assert (np.diff(row[peak:]) <= 0).all()
        assert 0 < row[peak] <= 1


def test_no_samples_give_no_frames() -> None:
    assert list(mfcc_blocks(iter([]))) == []
    assert MfccStream().push(np.zeros(0, dtype=np.float32)).shape == (0, 13)
