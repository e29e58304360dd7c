"""Cheap descriptors of each medium: what quality ranges, lineage and drift look at."""

from __future__ import annotations

import math
import unicodedata
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage

Measures = tuple[tuple[str, float], ...]
"""(name with its unit, value), sorted by name, rounded so that they are the same on every host."""

SILENCE_DB = -120.0
_LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float64)  # ITU-R BT.601
_CLIPPED = 32_700 / 32_768


def measure_image(pixels: npt.NDArray[np.uint8]) -> Measures:
    """Of an RGB picture [H, W, 3]: size, and on the 0..255 scale brightness (mean luma), contrast
    (its standard deviation), saturation (mean of max - min) and sharpness (variance of the
    Laplacian of luma)."""
    luma = pixels.astype(np.float64) @ _LUMA
    chroma = pixels.max(axis=2).astype(np.float64) - pixels.min(axis=2)
    return _sorted(
        width_px=pixels.shape[1],
        height_px=pixels.shape[0],
        brightness=luma.mean(),
        contrast=luma.std(),
        saturation=chroma.mean(),
        sharpness=ndimage.laplace(luma).var(),
    )


def fingerprint_image(pixels: npt.NDArray[np.uint8]) -> Measures:
    """Of an RGB picture [H, W, 3]: its difference hash, 64 bits in four measures, and its tone.

    A bit says whether luma rises from one cell to the next on a grid of 9 x 8 mean values, by more
    than one level of 255: scaling and recompression leave nearly all of them as they are. Tones
    are mean red and mean blue less mean luma: one shape in two colours has one hash.
    """
    wide = pixels.astype(np.float64)
    luma = wide @ _LUMA
    grid = _cells(_cells(luma, 8).T, 9).T
    bits = (np.diff(grid, axis=1) > 1.0).reshape(4, 16)
    values = bits @ (1 << np.arange(16))
    red, blue = (wide[:, :, channel].mean() - luma.mean() for channel in (0, 2))
    hashed = {f"dhash_{part}": value for part, value in enumerate(values)}
    return _sorted(**hashed, tone_blue=blue, tone_red=red)


def _cells(values: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    """Means of the rows [N, W] in `count` equal cells [count, W]; N may be less than `count`."""
    edges = np.linspace(0, len(values), count + 1)
    total = np.vstack([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    whole = np.minimum(edges.astype(int), len(values) - 1)
    upto = total[whole] + (edges - whole)[:, None] * values[whole]
    means: npt.NDArray[np.float64] = np.diff(upto, axis=0) / (len(values) / count)
    return means


def measure_audio(samples: npt.NDArray[np.float32], rate_hz: int) -> Measures:
    """Of mono samples [T], -1..1: duration, level relative to full scale, share of clipped samples,
    and zero crossings a second."""
    wide = samples.astype(np.float64)
    rms = math.sqrt(float(np.mean(wide**2)))
    crossings = np.count_nonzero(np.diff(np.signbit(wide)))
    return _sorted(
        duration_ms=1000 * len(wide) / rate_hz,
        rms_db=max(20 * math.log10(rms), SILENCE_DB) if rms > 0 else SILENCE_DB,
        clipped_share=float(np.mean(np.abs(wide) >= _CLIPPED)),
        zero_crossings_hz=crossings * rate_hz / len(wide),
    )


def measure_text(text: str) -> Measures:
    """Of a text: characters, words (runs between white space), share of digits and of letters that
    are not Latin."""
    letters = [char for char in text if char.isalpha()]
    foreign = sum(not unicodedata.name(char, "").startswith("LATIN") for char in letters)
    return _sorted(
        characters=len(text),
        words=len(text.split()),
        digit_share=sum(char.isdigit() for char in text) / max(len(text), 1),
        non_latin_share=foreign / max(len(letters), 1),
    )


def _sorted(**values: Any) -> Measures:
    return tuple(sorted((name, round(float(value), 6)) for name, value in values.items()))
