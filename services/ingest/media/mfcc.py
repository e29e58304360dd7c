"""Mel-frequency cepstral coefficients, 100 frames a second, as the samples come.

Of samples x at 16 kHz: pre-emphasis y[n] = x[n] - 0.97 x[n-1]; frame i is 400 samples (25 ms) of y
around sample 160 i, silence beyond the ends, so that its time is exactly 10 i ms and n samples give
ceil(n / 160) frames; Hann window (periodic); power spectrum of a 512-point FFT, divided by 512; 40
triangular filters between 0 and 8000 Hz, evenly spaced in mel = 2595 log10(1 + f / 700)
(O'Shaughnessy 1987); natural logarithm, not below log(1e-10); DCT-II, orthonormal; coefficients 0
to 12, of which coefficient 0 is the mean log energy of all filters times sqrt(40).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy import fft, signal

Samples = npt.NDArray[np.float32]

RATE_HZ = 16_000
HOP = 160
WINDOW = 400
PERIOD_MS = 1000 * HOP / RATE_HZ
COEFFICIENTS = 13

_FFT = 512
_FILTERS = 40
_PRE_EMPHASIS = 0.97
_FLOOR = 1e-10
_FRAMES_AT_ONCE = 100


def mel_filters() -> npt.NDArray[np.float64]:
    """[_FILTERS, _FFT // 2 + 1]: triangles of height 1, corners on exact frequencies."""
    top = 2595 * np.log10(1 + RATE_HZ / 2 / 700)
    corners = 700 * (10 ** (np.linspace(0, top, _FILTERS + 2) / 2595) - 1)
    bins = np.arange(_FFT // 2 + 1) * RATE_HZ / _FFT
    low, middle, high = corners[:-2, None], corners[1:-1, None], corners[2:, None]
    rising, falling = (bins - low) / (middle - low), (high - bins) / (high - middle)
    return np.maximum(0.0, np.minimum(rising, falling))


class MfccStream:
    """Samples in, frames out, as soon as their windows are whole."""

    def __init__(self) -> None:
        self._filters = mel_filters().T
        self._window = signal.get_window("hann", WINDOW)
        self._held = np.zeros(WINDOW // 2)  # emphasised, from half a window before the next frame
        self._last = 0.0
        self._samples = 0
        self._frames = 0

    def push(self, samples: Samples) -> npt.NDArray[np.float32]:
        """[frames, 13]: those that no later sample can change."""
        self._samples += len(samples)
        self._held = np.concatenate([self._held, self._emphasise(samples)])
        return self._give((len(self._held) - WINDOW) // HOP + 1)

    def finish(self) -> npt.NDArray[np.float32]:
        """The frames whose windows reach beyond the end."""
        self._held = np.concatenate([self._held, np.zeros(WINDOW)])
        return self._give(-(-self._samples // HOP) - self._frames)

    def _give(self, frames: int) -> npt.NDArray[np.float32]:
        if frames <= 0:
            return np.zeros((0, COEFFICIENTS), dtype=np.float32)
        starts = range(0, frames, _FRAMES_AT_ONCE)
        parts = [self._transform(start, min(_FRAMES_AT_ONCE, frames - start)) for start in starts]
        self._held = self._held[frames * HOP :].copy()
        self._frames += frames
        return np.concatenate(parts)

    def _transform(self, start: int, frames: int) -> npt.NDArray[np.float32]:
        windows = np.lib.stride_tricks.sliding_window_view(self._held[start * HOP :], WINDOW)
        power = np.abs(fft.rfft(windows[::HOP][:frames] * self._window, _FFT)) ** 2 / _FFT
        energies = np.log(np.maximum(power @ self._filters, _FLOOR))
        coefficients = fft.dct(energies, type=2, norm="ortho", axis=1)[:, :COEFFICIENTS]
        return np.ascontiguousarray(coefficients, dtype=np.float32)

    def _emphasise(self, samples: Samples) -> npt.NDArray[np.float64]:
        wide = samples.astype(np.float64)
        if not len(wide):
            return wide
        before = np.concatenate([[self._last], wide[:-1]])
        self._last = float(wide[-1])
        return wide - _PRE_EMPHASIS * before


def mfcc_blocks(blocks: Iterator[Samples]) -> Iterator[npt.NDArray[np.float32]]:
    """[frames, 13] for each block that completes any."""
    stream = MfccStream()
    for block in blocks:
        if len(out := stream.push(block)):
            yield out
    if len(out := stream.finish()):
        yield out
