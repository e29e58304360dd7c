"""Voices out of recordings: what is released describes a recording and cannot be played.

The voice features are MFCCs (13 coefficients, 100 frames a second; Davis and Mermelstein, 1980),
their means and deviations over the recording, rounded, then hashed with HMAC-SHA3-256 cut to 16
bytes. The hash links recordings of the same sound within one key's scope, and nothing more: it
does not link two recordings of one speaker.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import fft

from services.deidentify.pseudonyms import ReleaseKey
from services.deidentify.redaction import Redacted, Region
from services.ingest.normalise import read_wav
from services.preprocess.media import SAMPLE_RATE_HZ
from validators.contracts.dataset import Media
from validators.contracts.digest import canonical_json

KIND = "VOICE"
MEDIA_TYPE = "application/vnd.modalgate.voice+json"
HASH_BYTES = 16
FRAMES_PER_S = 100

_WINDOW = 400  # 25 ms
_HOP = SAMPLE_RATE_HZ // FRAMES_PER_S
_FFT = 512
_MEL_BANDS = 40
_COEFFICIENTS = 13
_ROUNDING = 0.25

Floats = npt.NDArray[np.float64]


class VoiceRedactor:
    """The operation `hash`."""

    def __init__(self, key: ReleaseKey) -> None:
        self._key = key

    def redact(self, media: Media, data: bytes) -> Redacted:
        samples = read_wav(data).astype(np.float64) / 32768.0
        features = mfcc(samples)
        document = canonical_json(
            {
                "voice": voice_hash(features, self._key),
                "frames": len(features),
                "frames_per_s": FRAMES_PER_S,
                "measures": dict(media.measures),
            }
        )
        region = Region(KIND, (0, len(samples)))
        return Redacted(document, MEDIA_TYPE, media.measures, (region,))


def voice_hash(features: Floats, key: ReleaseKey) -> str:
    """32 hex digits for MFCC features [T, 13] under the key."""
    summary = np.concatenate([features.mean(axis=0), features.std(axis=0)])
    rounded = np.rint(summary / _ROUNDING).astype("<i4").tobytes()
    return key.derive("voice", rounded)[:HASH_BYTES].hex()


def mfcc(samples: Floats) -> Floats:
    """Mel-frequency cepstral coefficients [T, 13] of mono samples at 16 kHz, T at 100 a second."""
    padded = np.pad(samples, (0, max(0, _WINDOW - len(samples))))
    frames = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[::_HOP]
    power = np.abs(np.fft.rfft(frames * np.hanning(_WINDOW), n=_FFT)) ** 2 / _FFT
    energies = np.log(np.maximum(power @ mel_bands(), 1e-10))
    cepstrum: Floats = fft.dct(energies, type=2, axis=1, norm="ortho")[:, :_COEFFICIENTS]
    return cepstrum


def mel_bands() -> Floats:
    """Triangular filters [257, 40], equally spaced on the mel scale from 20 Hz to 7.6 kHz."""
    low, high = (2595 * np.log10(1 + hz / 700) for hz in (20.0, 7600.0))
    edges_hz = 700 * (10 ** (np.linspace(low, high, _MEL_BANDS + 2) / 2595) - 1)
    bins_hz = np.fft.rfftfreq(_FFT, 1 / SAMPLE_RATE_HZ)[:, None]
    rising = (bins_hz - edges_hz[:-2]) / (edges_hz[1:-1] - edges_hz[:-2])
    falling = (edges_hz[2:] - bins_hz) / (edges_hz[2:] - edges_hz[1:-1])
    triangles: Floats = np.maximum(0.0, np.minimum(rising, falling))
    return triangles
