"""Released media as raw items, one at a time: a data set may be larger than memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar, overload

from services.preprocess import RawInput
from validators.contracts.dataset import Media, Sample
from validators.contracts.ports import ObjectStore

RELEASED = ("image/", "text/")
"""Kinds of media that are released as such: pictures and texts; voices are not."""

_GOLDEN = (math.sqrt(5) - 1) / 2

T = TypeVar("T")


class ReleasedMedia(Sequence[RawInput]):
    """Raw items of one modality, read from the store as they are asked for."""

    def __init__(self, store: ObjectStore, media: Sequence[Media]) -> None:
        self._store = store
        self._media = media

    @staticmethod
    def of(store: ObjectStore, samples: Sequence[Sample], modality: str) -> ReleasedMedia:
        """What is released as media, spread out."""
        return ReleasedMedia(store, spread_out(_released(samples, modality)))

    @staticmethod
    def in_order(store: ObjectStore, samples: Sequence[Sample], modality: str) -> ReleasedMedia:
        """What is released as media, in the data set's own order."""
        return ReleasedMedia(store, _released(samples, modality))

    def __len__(self) -> int:
        return len(self._media)

    @overload
    def __getitem__(self, at: int) -> RawInput: ...
    @overload
    def __getitem__(self, at: slice) -> ReleasedMedia: ...
    def __getitem__(self, at: int | slice) -> RawInput | ReleasedMedia:
        if isinstance(at, slice):
            return ReleasedMedia(self._store, self._media[at])
        item = self._media[at]
        data = self._store.get(item.digest)
        return data.decode() if item.media_type.startswith("text/") else data


def _released(samples: Sequence[Sample], modality: str) -> list[Media]:
    found = (sample.find(modality) for sample in samples)
    return [item for item in found if item and item.media_type.startswith(RELEASED)]


def spread_out(items: Sequence[T]) -> list[T]:
    """The same items in an order of which every beginning is spread evenly over all of them.

    A data set has an order, so its first items stand for nothing. By multiples of the golden ratio,
    which keep step with no period of the data; the same items always come in the same order.
    """
    order = sorted(range(len(items)), key=lambda at: at * _GOLDEN % 1)
    return [items[at] for at in order]
