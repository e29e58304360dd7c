"""Other views of an item: what a query looks like beside the picture, text or sound it is about.

View 1 asks for view 0, the item itself; further ones are what an adapter learns from, since pairs
of vectors need no labels. Every version gets the same view through its own preprocessing.
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from services.preprocess.media import FloatPCM, decode_image
from services.preprocess.preprocessor import RawInput
from validators.contracts.errors import BadInput

KINDS = frozenset({"image", "wordpiece", "log_mel"})
"""Preprocessings whose raw input has other views; one of ready tensors has none."""

VIEWS = 6
MAX_SIDE_PX = 1024
_NOISE_DB = 30.0


def view_of(raw: RawInput, kind: str, number: int) -> RawInput:
    """View `number` (0..VIEWS - 1) of the raw input of a preprocessing kind.

    0 is the input itself. 1 is it with a little less: a picture without its margin, a text without
    its last word, a sound with noise 30 dB below it. The others are parts of it.

    Raises:
        BadInput: a kind that has no views, an unknown number, or an input that cannot be read.
    """
    if kind not in KINDS or not 0 <= number < VIEWS:
        raise BadInput(f"there is no view {number} of {kind} input", where=kind)
    if number == 0:
        return raw
    if kind == "image" and isinstance(raw, bytes):
        return _picture(raw, number)
    if kind == "wordpiece" and isinstance(raw, str | bytes):
        text = raw.decode("utf-8", errors="replace") if isinstance(raw, bytes) else raw
        return _text(text, number)
    if kind == "log_mel" and isinstance(raw, np.ndarray):
        return _sound(raw, number)
    raise BadInput(f"{type(raw).__name__} is no raw {kind} input", where=kind)


def _picture(data: bytes, number: int) -> bytes:
    picture = decode_image(data)
    wide, high = picture.size
    if number == 1:
        left, top, share = 0.06, 0.06, 0.88
    else:
        left, top, share = (number % 2) / 3, (number // 2 % 2) / 3, 2 / 3
    box = (wide * left, high * top, wide * (left + share), high * (top + share))
    right, bottom = max(round(box[2]), 1), max(round(box[3]), 1)
    cut = picture.crop((min(round(box[0]), right - 1), min(round(box[1]), bottom - 1),
                        right, bottom))  # fmt: skip
    cut.thumbnail((MAX_SIDE_PX, MAX_SIDE_PX), Image.Resampling.BICUBIC)
    out = io.BytesIO()
    cut.save(out, "PNG", compress_level=1)
    return out.getvalue()


def _text(text: str, number: int) -> str:
    words = text.split()
    if len(words) < 3:
        return text
    if number == 1:
        return " ".join(words[:-1])
    half = -(-len(words) // 2)
    left_out = (number - 2) % len(words)
    parts = (words[:half], words[-half:], words[:left_out] + words[left_out + 1 :], words[::-1])
    return " ".join(parts[number - 2])


def _sound(samples: FloatPCM, number: int) -> FloatPCM:
    count = len(samples)
    if number == 1:
        level = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) if count else 0.0
        noise = np.random.default_rng(count).standard_normal(count)
        noisy = samples + level * 10 ** (-_NOISE_DB / 20) * noise
        return np.clip(noisy, -1, 1).astype(np.float32)
    start = (number - 2) * count // 12
    return np.ascontiguousarray(samples[start : max(start + 2 * count // 3, start + 1)])
