"""The window of a data set: its measures, tags and presence as columns, one row a sample."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from validators.contracts.dataset import Dataset
from validators.drift.columns import Categories, Embedded, Scalars
from validators.drift.window import MAX_TAG_WORDS, DriftWindow


def window_of(dataset: Dataset, embeddings: Mapping[str, Embedded] | None = None) -> DriftWindow:
    """Measures as `image.brightness` and the like, `presence.<modality>` as yes or no.

    `embeddings` have the places of their samples in the data set as rows.
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
                column = scalars.setdefault(f"{modality}.{name}", [np.nan] * len(samples))
                column[row] = value
    times = [sample.captured_ms for sample in samples]
    known = all(time is not None for time in times)
    names = sorted({name for sample in samples for name, _ in sample.tags})
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
        times_ms=np.array([round(time or 0) for time in times], np.int64) if known else None,
    )
