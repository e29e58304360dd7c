"""The window of a data set: its measures, tags and presence as columns, one row a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from validators.contracts.dataset import (
    FINGERPRINTS,
    RECORDING_TAG,
    SPLIT_TAG,
    Dataset,
    Sample,
)
from validators.drift.columns import Categories, Codes, Embedded, Scalars
from validators.drift.window import MAX_TAG_WORDS, DriftWindow


def window_of(dataset: Dataset, embeddings: Mapping[str, Embedded] | None = None) -> DriftWindow:
    """Measures as `image.brightness` and the like, `presence.<modality>` as yes or no.

    `embeddings` have the places of their samples in the data set as rows. A data set is a
    collection, not a stream: its samples are taken as independent of each other, except for those
    that share the tag `recording`, which is no slice of its own.
    """
    samples = dataset.samples
    modalities = sorted({media.modality for sample in samples for media in sample.media})
    scalars: dict[str, list[float]] = {}
    presence = {f"presence.{modality}": [""] * len(samples) for modality in modalities}
    for row, sample in enumerate(samples):
        for modality in modalities:
            media = sample.find(modality)
            presence[f"presence.{modality}"][row] = "yes" if media is not None else "no"
            for name, value in media.measures if media else ():
                if name in FINGERPRINTS:
                    continue
                column = scalars.setdefault(f"{modality}.{name}", [np.nan] * len(samples))
                column[row] = value
    found = {name for sample in samples for name, _ in sample.tags}
    names = sorted(found - {RECORDING_TAG, SPLIT_TAG})
    return DriftWindow(
        rows=len(samples),
        descriptors={name: Scalars.of(values) for name, values in scalars.items()},
        categories={name: Categories.of(words) for name, words in presence.items()},
        embeddings=embeddings or {},
        tags={
            name: Categories.of(
                [sample.tag_map().get(name) for sample in samples], limit=MAX_TAG_WORDS
            )
            for name in names
        },
        recordings=_recordings(samples) if RECORDING_TAG in found else None,
    )


def _recordings(samples: Sequence[Sample]) -> Codes:
    """Numbers of recordings; a sample outside any has one of its own."""
    numbers: dict[str, int] = {}
    found = [
        numbers.setdefault(f"recording {tag}" if tag is not None else f"row {row}", len(numbers))
        for row, tag in enumerate(sample.tag_map().get(RECORDING_TAG) for sample in samples)
    ]
    return np.array(found, np.int32)
