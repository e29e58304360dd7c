"""Calibration inputs that look like what they stand for: smooth pictures, token ids with words."""

from __future__ import annotations

import numpy as np

from services.engines.tensors import Arrays


def pictures(count: int = 24, seed: int = 1) -> list[Arrays]:
    """Blobs of colour on a gradient, [1, 3, 16, 16] in -1 to 1."""
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:16, 0:16] / 15.0
    made = []
    for _ in range(count):
        picture = np.empty((1, 3, 16, 16), np.float32)
        for channel in range(3):
            slope = random.uniform(-1, 1, 2)
            centre, width = random.uniform(0, 1, 2), random.uniform(0.1, 0.5)
            distance = (rows - centre[0]) ** 2 + (columns - centre[1]) ** 2
            plane = slope[0] * rows + slope[1] * columns + np.exp(-distance / width**2)
            picture[0, channel] = np.clip(plane - plane.mean(), -1, 1)
        made.append({"pixels": picture})
    return made


def sentences(count: int = 24, seed: int = 1) -> list[Arrays]:
    """A start token, words by a rank-frequency law, an end token; [1, tokens], nothing masked."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        length = int(random.integers(3, 13))
        words = 3 + np.minimum(random.zipf(1.5, length - 2), 96)
        ids = np.concatenate(([1], words, [2])).astype(np.int64)[None]
        made.append({"ids": ids, "mask": np.ones_like(ids)})
    return made
