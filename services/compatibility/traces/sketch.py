"""A tensor as 64 numbers that keep angles and distances: a seeded random projection.

Large tensors are first thinned to SAMPLED elements, one at a seeded place in each equal part, the
same places for every tensor of that size. Sketches compare within one installation only: NumPy does
not promise its stream for ever, and nothing stores them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

SKETCH = 64
SAMPLED = 8192
_SEED = 20


def sketch_of(values: Array) -> Array:
    """The projection of a flat, finite float32 tensor, [SKETCH] float32.

    Its norm is that of the tensor up to about 1 / sqrt(2 SKETCH), 9 %; between sketches of two
    tensors that are alike the error shrinks with their difference.
    """
    size = values.size
    if size > SAMPLED:
        values = values[_places(size)] * np.float32(np.sqrt(size / SAMPLED))
    peak = float(np.abs(values).max()) if size else 0.0
    if peak > 1e30:  # projected, it would leave float32
        values = values * np.float32(1e30 / peak)
    projected: Array = values @ _signs()[: values.size]
    return projected


@lru_cache(maxsize=1)
def _signs() -> Array:
    """Random signs over sqrt(SKETCH) (Achlioptas, J. Comput. Syst. Sci. 66, 2003)."""
    signs = np.random.default_rng(_SEED).integers(0, 2, (SAMPLED, SKETCH), dtype=np.int8)
    scaled: Array = (2 * signs.astype(np.float32) - 1) / np.float32(np.sqrt(SKETCH))
    return scaled


@lru_cache(maxsize=512)
def _places(size: int) -> Array:
    within = np.random.default_rng((_SEED, size)).random(SAMPLED)
    places = (np.arange(SAMPLED) + within) * (size / SAMPLED)
    return np.minimum(places.astype(np.int64), size - 1)
