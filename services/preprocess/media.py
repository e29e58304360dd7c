"""From the bytes of a picture or a recording to numbers, within bounds.

Nothing is decoded before its size is known to be acceptable: first the bytes, then the header's
pixels or frames, then the data. Only the formats named here are tried.
"""

from __future__ import annotations

import io
import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import soundfile
from PIL import Image, ImageOps
from scipy import signal

from validators.contracts.errors import BadInput, TooLarge, Unsupported

FloatPCM = npt.NDArray[np.float32]
"""Mono samples at SAMPLE_RATE_HZ, -1..1."""

SAMPLE_RATE_HZ = 16_000
MAX_IMAGE_BYTES = 4 * 1024 * 1024
MAX_IMAGE_PIXELS = 40_000_000
MAX_AUDIO_BYTES = 32 * 1024 * 1024
MAX_AUDIO_S = 60.0
MAX_CHANNELS = 8

_IMAGE_FORMATS = ("JPEG", "PNG", "WEBP")
_AUDIO_FORMATS = ("WAV", "WAVEX", "FLAC", "OGG")
_SOURCE_RATES_HZ = range(4_000, 192_001)
_WHITE = (255, 255, 255, 255)


def decode_image(data: bytes) -> Image.Image:
    """The picture as RGB, upright (EXIF orientation applied), transparency laid over white.

    Raises:
        TooLarge: more than MAX_IMAGE_BYTES or MAX_IMAGE_PIXELS.
        Unsupported: not JPEG, PNG or WebP.
        BadInput: empty, cut short or corrupt.
    """
    _require_bytes(data, MAX_IMAGE_BYTES, "picture")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our bound is below
            picture = Image.open(io.BytesIO(data), formats=_IMAGE_FORMATS)
    except Image.DecompressionBombError as error:
        raise _too_many_pixels(str(error)) from error
    except (OSError, ValueError, SyntaxError) as error:
        raise Unsupported(
            "the bytes are not a picture of a known format",
            where="image",
            remedy="Send JPEG, PNG or WebP.",
        ) from error
    if picture.width * picture.height > MAX_IMAGE_PIXELS:
        raise _too_many_pixels(f"{picture.width} x {picture.height}")
    try:
        return _to_rgb(ImageOps.exif_transpose(picture))
    except (OSError, ValueError, SyntaxError, EOFError, IndexError) as error:
        raise BadInput(
            "the picture is corrupt or cut short", where="image", remedy="Send the whole file."
        ) from error


def decode_audio(data: bytes) -> FloatPCM:
    """The recording as float32 mono at 16 kHz, -1..1: channels averaged, polyphase resampled.

    Raises:
        TooLarge: more than MAX_AUDIO_BYTES, MAX_AUDIO_S or MAX_CHANNELS.
        Unsupported: not WAV, FLAC or Ogg (Vorbis, Opus), or an unusual sample rate.
        BadInput: empty, cut short, corrupt, or not finite.
    """
    _require_bytes(data, MAX_AUDIO_BYTES, "recording")
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as source:
            _check_header(source)
            # A header may lie about its length: never read past the bound.
            limit = int(MAX_AUDIO_S * source.samplerate) + 1
            samples = source.read(frames=limit, dtype="float32", always_2d=True)
            rate_hz = int(source.samplerate)
    except soundfile.LibsndfileError as error:
        raise Unsupported(
            "the bytes are not a recording of a known format",
            where="audio",
            remedy="Send WAV, FLAC or Ogg, whole.",
        ) from error
    return _checked(resample(samples.mean(axis=1), rate_hz))


def decode_pcm16(data: bytes) -> FloatPCM:
    """Raw 16-bit little-endian mono samples at 16 kHz as float32, -1..1.

    Raises:
        TooLarge: longer than MAX_AUDIO_S.  BadInput: empty, or half a sample at the end.
    """
    _require_bytes(data, int(MAX_AUDIO_S * SAMPLE_RATE_HZ) * 2, "recording")
    if len(data) % 2:
        raise BadInput(
            "raw audio has an odd number of bytes",
            where="audio_pcm",
            remedy="Send 16-bit little-endian mono samples at 16 kHz.",
        )
    return _checked(np.frombuffer(data, dtype="<i2").astype(np.float32) / 32768.0)


def resample(samples: npt.NDArray[Any], rate_hz: int) -> FloatPCM:
    """Mono samples at `rate_hz` as float32 at SAMPLE_RATE_HZ (polyphase, Kaiser window)."""
    if rate_hz == SAMPLE_RATE_HZ or samples.size == 0:
        return np.ascontiguousarray(samples, dtype=np.float32)
    common = math.gcd(rate_hz, SAMPLE_RATE_HZ)
    resampled = signal.resample_poly(samples, SAMPLE_RATE_HZ // common, rate_hz // common)
    return np.ascontiguousarray(resampled, dtype=np.float32)


def _require_bytes(data: bytes, limit: int, what: str) -> None:
    if not data:
        raise BadInput(f"the {what} is empty", remedy="Send the file's bytes.")
    if len(data) > limit:
        raise TooLarge(
            f"the {what} has {len(data)} bytes, more than {limit}", remedy="Send a smaller one."
        )


def _too_many_pixels(seen: str) -> TooLarge:
    return TooLarge(
        f"the picture has more than {MAX_IMAGE_PIXELS} pixels: {seen}",
        where="image",
        remedy="Scale it down before sending.",
    )


def _to_rgb(picture: Image.Image) -> Image.Image:
    picture.load()
    if picture.mode.startswith("I;16"):
        wide = np.asarray(picture, dtype=np.uint16) >> 8
        return Image.fromarray(wide.astype(np.uint8)).convert("RGB")
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        ground = Image.new("RGBA", picture.size, _WHITE)
        picture = Image.alpha_composite(ground, picture)
    return picture.convert("RGB")


def _check_header(source: soundfile.SoundFile) -> None:
    if source.format not in _AUDIO_FORMATS:
        raise Unsupported(
            f"recordings in {source.format} are not read",
            where="audio",
            remedy="Send WAV, FLAC or Ogg.",
        )
    if source.samplerate not in _SOURCE_RATES_HZ:
        raise Unsupported(
            f"a sample rate of {source.samplerate} Hz is not read",
            where="audio",
            remedy="Send 4 to 192 kHz, best 16 kHz.",
        )
    if source.channels > MAX_CHANNELS or source.frames > MAX_AUDIO_S * source.samplerate:
        raise TooLarge(
            f"the recording has {source.channels} channels of {source.frames} frames",
            where="audio",
            remedy=f"Send at most {MAX_AUDIO_S:g} s in at most {MAX_CHANNELS} channels.",
        )


def _checked(samples: FloatPCM) -> FloatPCM:
    if samples.size == 0:
        raise BadInput("the recording holds no sample", where="audio", remedy="Record again.")
    if samples.size > int(MAX_AUDIO_S * SAMPLE_RATE_HZ) + 1:
        raise TooLarge(
            f"the recording is longer than {MAX_AUDIO_S:g} s", where="audio", remedy="Cut it."
        )
    if not np.isfinite(samples).all():
        raise BadInput(
            "the recording holds NaN or infinity", where="audio", remedy="Send finite samples."
        )
    return samples
