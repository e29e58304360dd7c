from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal

from services.ingest.media.resampling import Resampler, outputs_of, resample_blocks
from validators.contracts.errors import Unsupported

RATES = [8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000, 44_101]
NTSC = Fraction(48_000 * 1000, 1001)


def split(
    samples: npt.NDArray[np.float32], sizes: Iterator[int]
) -> Iterator[npt.NDArray[np.float32]]:
    at = 0
    while at < len(samples):
        size = next(sizes)
        yield samples[at : at + size]
        at += size


@pytest.mark.parametrize("rate_hz", [*RATES, NTSC])
def test_blocks_give_what_the_whole_would_give_at_once(rate_hz: int | Fraction) -> None:
    random = np.random.default_rng(7)
    samples = random.uniform(-1, 1, 50_000).astype(np.float32)
    sizes = iter(lambda: int(random.integers(1, 4_000)), None)
    streamed = np.concatenate(list(resample_blocks(split(samples, sizes), rate_hz, 16_000)))
    ratio = Fraction(16_000) / Fraction(rate_hz)
    whole = signal.resample_poly(samples, ratio.numerator, ratio.denominator)
    assert len(streamed) == len(whole) == math.ceil(len(samples) * ratio)
    assert np.abs(streamed - whole).max() < 1e-5


@given(st.integers(1, 3_000), st.sampled_from(RATES[:-1]), st.integers(1, 997))
@settings(deadline=None, max_examples=40)
def test_any_length_in_blocks_of_any_size_gives_its_exact_number_of_samples(
    length: int, rate_hz: int, block: int
) -> None:
    samples = np.ones(length, dtype=np.float32)
    out = list(resample_blocks(split(samples, iter(lambda: block, None)), rate_hz, 16_000))
    assert sum(map(len, out)) == math.ceil(Fraction(length * 16_000, rate_hz))
    assert all(len(part) for part in out)


@given(st.floats(0.1, 24), st.sampled_from([*RATES, NTSC]))
def test_the_length_is_within_a_sample_after_hours(hours: float, rate_hz: int | Fraction) -> None:
    samples = int(hours * 3600 * rate_hz)
    ratio = Fraction(16_000) / Fraction(rate_hz)
    out = outputs_of(samples, ratio.numerator, ratio.denominator)
    assert 0 <= out - samples * ratio < 1


@pytest.mark.heavy
@pytest.mark.parametrize("rate_hz", [44_100, NTSC])
def test_after_two_hours_a_click_is_where_it_was(rate_hz: int | Fraction) -> None:
    seconds = 2 * 3600
    second = int(rate_hz)
    clicks = [10.0, 1800.0, 3599.5, 7199.25]
    places = [int(at * rate_hz) for at in clicks]

    def blocks() -> Iterator[npt.NDArray[np.float32]]:
        for start in range(0, seconds * second, second):
            block = np.zeros(second, dtype=np.float32)
            for place in places:
                if start <= place < start + second:
                    block[place - start] = 1
            yield block

    count, found = 0, []
    for out in resample_blocks(blocks(), rate_hz, 16_000):
        found += [count + at for at in np.flatnonzero(out > 0.2)]
        count += len(out)
    ratio = Fraction(16_000) / Fraction(rate_hz)
    assert 0 <= count - seconds * second * ratio < 1
    assert [min(abs(at - place * ratio) for at in found) <= 1 for place in places] == [True] * 4


def test_a_tone_below_half_the_rate_survives_and_one_above_does_not() -> None:
    at = np.arange(48_000) / 48_000
    for hertz, low, high in [(1000, 0.70, 0.71), (7000, 0.6, 0.72), (12_000, 0.0, 0.01)]:
        tone = np.sin(2 * np.pi * hertz * at).astype(np.float32)
        (*_, out) = (np.concatenate(list(resample_blocks(iter([tone]), 48_000, 16_000))),)
        assert low <= float(np.sqrt(np.mean(out[200:-200] ** 2))) <= high


@pytest.mark.parametrize(
    ("source", "target"), [(0, 16_000), (16_000, 0), (-1, 16_000), (999_983, 16_000)]
)
def test_rates_without_a_sensible_ratio_are_refused(source: int, target: int) -> None:
    with pytest.raises(Unsupported):
        Resampler(source, target)
