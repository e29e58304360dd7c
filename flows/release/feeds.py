"""Released data as an encoder's own inputs: what precisions are calibrated and judged on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flows.release.media import ReleasedMedia
from flows.release.run import Release
from services.preprocess import make_preprocessor
from validators.contracts.dataset import Dataset
from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import ShapeProfile
from validators.contracts.ports import Tensors

MAX_ITEMS = 120
HELD_OUT_EVERY = 3
"""Every third item is judged only; calibration sees the others."""


@dataclass(frozen=True, slots=True)
class RealFeeds:
    """Items in the data set's order, a batch of one each. Empty where nothing of it is released."""

    items: tuple[Tensors, ...] = ()

    @property
    def held_out(self) -> tuple[int, ...]:
        return tuple(range(HELD_OUT_EVERY - 1, len(self.items), HELD_OUT_EVERY))

    @property
    def calibration(self) -> tuple[Tensors, ...]:
        judged = frozenset(self.held_out)
        return tuple(item for at, item in enumerate(self.items) if at not in judged)


def real_feeds(
    release: Release,
    clean: Dataset,
    contract: EncoderContract,
    profiles: Sequence[ShapeProfile],
) -> RealFeeds:
    """The released media of the encoder's modality through its own preprocessing.

    What is not released as media (voices) gives nothing, and what no profile covers is left out.
    """
    store = release.workspace.store
    media = ReleasedMedia.in_order(store, clean.samples, contract.modality)
    if not media:
        return RealFeeds()
    step = max(1, -(-len(media) // MAX_ITEMS))
    preprocess = make_preprocessor(contract.preprocess, store.get)
    feeds = []
    for raw in media[::step]:
        made = preprocess(raw)
        shapes = {name: array.shape for name, array in made.items()}
        if any(profile.covers(shapes) for profile in profiles):
            feeds.append(made)
    return RealFeeds(tuple(feeds))
