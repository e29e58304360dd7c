"""What a data set's lineage looks like: one small document that a later release compares with."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from validators.contracts.dataset import Dataset, Sample

REQUIRED_TAGS = ("sensor", "channels", "lighting", "source")


@dataclass(frozen=True, slots=True)
class Brightness:
    """Mean luma of the pictures, 0..255, its standard deviation, and of how many."""

    mean: float
    deviation: float
    pictures: int


@dataclass(frozen=True, slots=True)
class LineageSummary:
    """The values that each tag takes, the modalities, and how bright the pictures are.

    `channels` are sets written in one order: "RGB+IR" and "IR+RGB" are the same entry.
    """

    samples: int
    modalities: tuple[str, ...]
    channels: tuple[str, ...]
    sensors: tuple[str, ...]
    lighting: tuple[str, ...]
    sources: tuple[str, ...]
    brightness: Brightness | None = None


def summarise(dataset: Dataset) -> LineageSummary:
    """The lineage of a data set; tags that a sample lacks are left out."""
    samples = dataset.samples
    return LineageSummary(
        samples=len(samples),
        modalities=_distinct(media.modality for sample in samples for media in sample.media),
        channels=_distinct(channel_set(value) for value in _tags(samples, "channels")),
        sensors=_distinct(_tags(samples, "sensor")),
        lighting=_distinct(_tags(samples, "lighting")),
        sources=_distinct(_tags(samples, "source")),
        brightness=_brightness(samples),
    )


def channel_set(text: str) -> str:
    """Channels in one order: "ir + RGB" is "IR+RGB"."""
    return "+".join(sorted(part.strip().upper() for part in text.split("+") if part.strip()))


def _tags(samples: Iterable[Sample], name: str) -> list[str]:
    values = (sample.tag_map().get(name, "").strip() for sample in samples)
    return [value for value in values if value]


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


def _brightness(samples: Iterable[Sample]) -> Brightness | None:
    measured = [
        value
        for sample in samples
        for media in sample.media
        if (value := media.measure("brightness")) is not None
    ]
    if not measured:
        return None
    mean = math.fsum(measured) / len(measured)
    spread = math.fsum((value - mean) ** 2 for value in measured)
    deviation = math.sqrt(spread / (len(measured) - 1)) if len(measured) > 1 else 0.0
    return Brightness(mean, deviation, len(measured))
