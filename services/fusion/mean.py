"""The weighted mean of unit vectors in one space: what is there decides, in its proportions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]

_SMALLEST_NORM = 1e-12


def fuse_vectors(vectors: Sequence[Vector], weights: Sequence[float]) -> Vector:
    """The weighted mean of `vectors` [D], scaled to length 1.

    Vectors that cancel out leave a zero vector, which is near to nothing.
    """
    stacked = np.stack(vectors).astype(np.float64)
    total = np.tensordot(np.asarray(weights, np.float64), stacked, axes=1)
    norm = max(float(np.linalg.norm(total)), _SMALLEST_NORM * max(sum(weights), 1.0))
    return np.asarray(total / norm, np.float32)
