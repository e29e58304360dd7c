"""The items that retrieval chooses from: vectors in the common space, ids and captions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from services.gateway.requests import Item
from validators.contracts.errors import Refused
from validators.contracts.origin import VectorOrigin

_UNIT_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class Catalogue:
    """`vectors` float32 [N, D], unit norm; `entries` (id, caption) in the same order.

    `origins`, by modality, are those of the vectors and of the space they lie in.
    """

    vectors: npt.NDArray[np.float32]
    entries: tuple[tuple[str, str], ...]
    origins: Mapping[str, VectorOrigin]

    @property
    def dimension(self) -> int:
        return int(self.vectors.shape[1])

    def nearest(self, vector: npt.NDArray[np.float32], top_k: int) -> tuple[Item, ...]:
        """The `top_k` items of highest cosine, best first; equal scores in catalogue order."""
        scores = self.vectors @ vector
        count = min(top_k, scores.size)
        best = np.argpartition(-scores, count - 1)[:count] if count < scores.size else None
        order = np.arange(scores.size) if best is None else np.sort(best)
        order = order[np.argsort(-scores[order], kind="stable")]
        return tuple(self._item(int(index), float(scores[index])) for index in order)

    def _item(self, index: int, score: float) -> Item:
        identity, caption = self.entries[index]
        return Item(identity, caption, score)


def make_catalogue(
    tensors: Mapping[str, npt.NDArray[Any]], entries: object, origins: Mapping[str, VectorOrigin]
) -> Catalogue:
    """The catalogue of a bundle's files, checked against each other.

    Raises:
        Refused: wrong type or shape, another number of entries, vectors not of unit norm.
    """
    vectors = tensors.get("vectors")
    if vectors is None or vectors.ndim != 2 or vectors.dtype != np.float32 or vectors.size == 0:
        raise _refuse("its tensor `vectors` is not float32 [N, D]")
    if not isinstance(entries, list) or len(entries) != vectors.shape[0]:
        raise _refuse("its entries are not one per vector")
    norms = np.linalg.norm(vectors, axis=1)
    if not np.isfinite(norms).all() or np.abs(norms - 1.0).max() > _UNIT_TOLERANCE:
        raise _refuse("its vectors are not of unit norm")
    return Catalogue(np.ascontiguousarray(vectors), tuple(map(_entry, entries)), origins)


def _entry(item: object) -> tuple[str, str]:
    if not isinstance(item, dict):
        raise _refuse("an entry is not an object")
    identity, caption = item.get("id"), item.get("caption")
    if not isinstance(identity, str) or not isinstance(caption, str):
        raise _refuse("an entry has no id or no caption")
    return identity, caption


def _refuse(why: str) -> Refused:
    return Refused(
        f"the catalogue cannot be used: {why}", where="catalogue", remedy="Make the bundle again."
    )
