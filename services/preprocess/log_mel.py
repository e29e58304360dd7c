"""Speech → log-mel spectrogram as the Whisper family of models reads it.

The definition is that of "Robust Speech Recognition via Large-Scale Weak Supervision" (Radford et
al., 2022): 25 ms periodic Hann windows every 10 ms, power spectrum, 80 area-normalised triangular
filters on Slaney's mel scale, log10 floored at 8 decades below the loudest bin, (x + 4) / 4.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import fft

from services.preprocess.media import SAMPLE_RATE_HZ, FloatPCM, decode_audio
from services.preprocess.options import read_options
from validators.contracts.digest import Digest
from validators.contracts.encoder import PreprocessSpec
from validators.contracts.errors import BadInput, TooLarge

WINDOW = 400  # samples, also the FFT length
HOP = 160  # samples
FRAMES_PER_S = SAMPLE_RATE_HZ // HOP
_LINEAR_HZ_PER_MEL = 200.0 / 3.0
_BREAK_HZ = 1000.0
_BREAK_MEL = _BREAK_HZ / _LINEAR_HZ_PER_MEL
_LOG_STEP = np.log(6.4) / 27.0
_DECADES = 8.0


@dataclass(frozen=True, slots=True)
class LogMelPreprocessor:
    """Mono 16 kHz samples (or an encoded recording) → `tensor` float32 [1, mels, 100 * seconds].

    Shorter recordings are padded with silence; longer ones refused, or cut where `longer` says so.
    """

    tensor: str
    mels: int
    seconds: int
    longer: str

    def __call__(self, raw: object) -> dict[str, npt.NDArray[Any]]:
        samples = decode_audio(raw) if isinstance(raw, bytes) else _require_samples(raw)
        limit = self.seconds * SAMPLE_RATE_HZ
        if samples.size > limit and self.longer == "refuse":
            raise TooLarge(
                f"the recording lasts {samples.size / SAMPLE_RATE_HZ:.1f} s, "
                f"the encoder hears {self.seconds} s",
                where=self.tensor,
                remedy="Send a shorter recording.",
            )
        padded = np.zeros(limit, np.float32)
        padded[: min(limit, samples.size)] = samples[:limit]
        return {self.tensor: log_mel(padded, self.mels)[None]}


def make_log_mel(spec: PreprocessSpec, read_asset: Callable[[Digest], bytes]) -> LogMelPreprocessor:
    """Options: tensor, mels, seconds, longer (refuse | cut)."""
    del read_asset
    options = read_options(spec, ("tensor", "mels", "seconds", "longer"))
    return LogMelPreprocessor(
        tensor=options.text("tensor", "mel"),
        mels=options.integer("mels", 80, 8, 128),
        seconds=options.integer("seconds", 30, 1, 30),
        longer=options.text("longer", "refuse", ("refuse", "cut")),
    )


def log_mel(samples: FloatPCM, mels: int = 80) -> npt.NDArray[np.float32]:
    """The normalised log-mel spectrogram [mels, len(samples) // HOP] of 16 kHz samples."""
    padded = np.pad(samples, WINDOW // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP][:-1]
    spectrum = fft.rfft(frames * _window(), axis=1)
    power = spectrum.real**2 + spectrum.imag**2
    loudness = np.log10(np.maximum(power @ mel_filters(mels).T, 1e-10))
    loudness = np.maximum(loudness, loudness.max() - _DECADES)
    return np.ascontiguousarray(((loudness + 4.0) / 4.0).T, dtype=np.float32)


@functools.lru_cache(maxsize=8)
def mel_filters(mels: int) -> npt.NDArray[np.float32]:
    """Area-normalised triangles on Slaney's mel scale, float32 [mels, WINDOW // 2 + 1]."""
    edges_hz = _mel_to_hz(np.linspace(0.0, _hz_to_mel(SAMPLE_RATE_HZ / 2), mels + 2))
    bins_hz = np.linspace(0.0, SAMPLE_RATE_HZ / 2, WINDOW // 2 + 1)
    low, peak, high = edges_hz[:-2, None], edges_hz[1:-1, None], edges_hz[2:, None]
    rising = (bins_hz - low) / (peak - low)
    falling = (high - bins_hz) / (high - peak)
    triangles = np.maximum(0.0, np.minimum(rising, falling)) * (2.0 / (high - low))
    filters: npt.NDArray[np.float32] = triangles.astype(np.float32)
    filters.setflags(write=False)
    return filters


@functools.lru_cache(maxsize=1)
def _window() -> npt.NDArray[np.float32]:
    phase = 2.0 * np.pi * np.arange(WINDOW) / WINDOW
    window: npt.NDArray[np.float32] = (0.5 - 0.5 * np.cos(phase)).astype(np.float32)
    return window


def _hz_to_mel(hz: float) -> float:
    if hz < _BREAK_HZ:
        return hz / _LINEAR_HZ_PER_MEL
    return float(_BREAK_MEL + np.log(hz / _BREAK_HZ) / _LOG_STEP)


def _mel_to_hz(mel: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    above = _BREAK_HZ * np.exp(_LOG_STEP * (np.maximum(mel, _BREAK_MEL) - _BREAK_MEL))
    return np.where(mel < _BREAK_MEL, mel * _LINEAR_HZ_PER_MEL, above)


def _require_samples(raw: object) -> FloatPCM:
    if not isinstance(raw, np.ndarray) or raw.ndim != 1 or raw.dtype != np.float32:
        raise BadInput(
            "a log-mel preprocessor was given something other than samples",
            where="audio",
            remedy="Give one-dimensional float32 samples at 16 kHz, or an encoded recording.",
        )
    if raw.size == 0 or not np.isfinite(raw).all():
        raise BadInput(
            "the recording is empty or not finite", where="audio", remedy="Record again."
        )
    return raw
