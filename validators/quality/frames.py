"""A data set as tables, for suites and rules: ids, media types, measures, times, tags.

No medium's content is in them, so nothing that a suite reports can quote a caption.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from validators.contracts.dataset import Dataset, Media, Sample
from validators.quality.words import SAMPLE

TAG_PREFIX = "tag."
MODALITIES = "modalities"
CAPTURED = "captured_ms"
MEDIA_TYPE = "media_type"
MAX_COLUMNS = 256
"""Of one kind in one table; further ones are left out, and a suite that asks for them is told."""


def samples_frame(dataset: Dataset, modalities: Iterable[str] = ()) -> pd.DataFrame:
    """One row a sample: its id, how many media, when, its tags (`tag.sensor`), and for each
    modality the media type, None where it is missing.

    `modalities` are those that get a column though no sample has them.
    """
    samples = dataset.samples
    columns: dict[str, object] = {
        SAMPLE: _texts(sample.id for sample in samples),
        MODALITIES: np.array([len(sample.media) for sample in samples], np.int64),
        CAPTURED: _numbers(sample.captured_ms for sample in samples),
    }
    types = [{item.modality: item.media_type for item in sample.media} for sample in samples]
    for name in _names(types, modalities):
        columns[name] = _texts(found.get(name) for found in types)
    tags = [dict(sample.tags) for sample in samples]
    for name in _names(tags):
        columns[TAG_PREFIX + name] = _texts(found.get(name) for found in tags)
    return pd.DataFrame(columns)


def modality_frame(dataset: Dataset, modality: str, measures: Iterable[str] = ()) -> pd.DataFrame:
    """One row for each sample that has the modality: its id, media type and measures.

    A measure that a sample lacks is NaN. `measures` are those that get a column in any case.
    """
    rows = list(_media(dataset, modality))
    found = [dict(item.measures) for _, item in rows]
    columns: dict[str, object] = {
        SAMPLE: _texts(sample.id for sample, _ in rows),
        MEDIA_TYPE: _texts(item.media_type for _, item in rows),
    }
    for name in _names(found, measures):
        columns[name] = _numbers(values.get(name) for values in found)
    return pd.DataFrame(columns)


def present_modalities(dataset: Dataset) -> tuple[str, ...]:
    """Every modality that some sample has, in order."""
    return tuple(sorted({item.modality for sample in dataset.samples for item in sample.media}))


def _media(dataset: Dataset, modality: str) -> Iterable[tuple[Sample, Media]]:
    return (
        (sample, item)
        for sample in dataset.samples
        for item in sample.media
        if item.modality == modality
    )


def _names(rows: Iterable[dict[str, object]] | Iterable[dict[str, str]]
           | Iterable[dict[str, float]], also: Iterable[str] = ()) -> list[str]:  # fmt: skip
    wanted = list(dict.fromkeys(also))
    seen = set[str]().union(*rows)
    return wanted + sorted(seen - set(wanted))[:MAX_COLUMNS]


def _texts(values: Iterable[str | None]) -> pd.Series[str]:
    return pd.Series(list(values), dtype=object)


def _numbers(values: Iterable[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Infinity counts as a number that was not measured: no range holds it, and no document."""
    found = np.array([math.nan if value is None else value for value in values], np.float64)
    found[~np.isfinite(found)] = math.nan
    return found
