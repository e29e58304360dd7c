"""Drift windows as values, for the tests of drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from validators.contracts.digest import digest_bytes
from validators.contracts.origin import VectorOrigin
from validators.drift.columns import Categories, Embedded, Scalars
from validators.drift.window import DriftWindow

ORIGIN = VectorOrigin(digest_bytes(b"encoder"), digest_bytes(b"engine"))
OTHER_ORIGIN = VectorOrigin(digest_bytes(b"encoder 2"), digest_bytes(b"engine 2"))


def embedded(
    vectors: npt.ArrayLike,
    rows: npt.ArrayLike | None = None,
    origin: VectorOrigin | None = ORIGIN,
    space: str = "common",
) -> Embedded:
    matrix = np.asarray(vectors, np.float32)
    places = np.arange(len(matrix)) if rows is None else np.asarray(rows, np.intp)
    return Embedded(matrix, places, space, origin)


def make_window(
    descriptors: Mapping[str, npt.ArrayLike] | None = None,
    embeddings: Mapping[str, npt.ArrayLike | Embedded] | None = None,
    categories: Mapping[str, Sequence[str | None]] | None = None,
    tags: Mapping[str, Sequence[str | None]] | None = None,
    **more: object,
) -> DriftWindow:
    """Rows as many as the longest column has."""
    scalars = {name: Scalars.of(values) for name, values in (descriptors or {}).items()}
    vectors = {
        name: item if isinstance(item, Embedded) else embedded(item)
        for name, item in (embeddings or {}).items()
    }
    words = {name: Categories.of(values) for name, values in (categories or {}).items()}
    lineage = {name: Categories.of(values) for name, values in (tags or {}).items()}
    lengths = [
        len(column) for group in (scalars, vectors, words, lineage) for column in group.values()
    ]
    return DriftWindow(
        max(lengths, default=0),
        scalars,
        words,
        vectors,
        lineage,
        **more,  # type: ignore[arg-type]
    )
