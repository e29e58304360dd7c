"""Data sets for the quality gate's tests: every medium has bytes of its own, unless told not to."""

from __future__ import annotations

from dataclasses import replace

from tests.validators.datasets import media, sample
from validators.contracts.dataset import Dataset, Media, Sample
from validators.contracts.digest import digest_bytes


def own(name: str, modality: str, **measures: float) -> Media:
    """A medium whose content is called `name`; its brightness or loudness differs a little too."""
    made = media(modality, **measures)
    digest = digest_bytes(f"{modality} {name}".encode())
    spread = int(digest[7:11], 16) / 65536
    varied = {
        key: value + spread if key in VARIED and key not in measures else value
        for key, value in made.measures
    }
    return replace(made, digest=digest, measures=tuple(sorted(varied.items())))


VARIED = frozenset({"brightness", "contrast", "sharpness", "rms_db"})


def row(name: str, *modalities: str, captured_ms: float | None = None, **tags: str) -> Sample:
    """A sample with media of its own."""
    items = [own(name, modality) for modality in modalities or ("image", "text")]
    return replace(sample(name, *items, **tags), captured_ms=captured_ms)


def rows(count: int, *modalities: str, prefix: str = "s") -> list[Sample]:
    return [row(f"{prefix}{index:05d}", *modalities) for index in range(count)]


def dataset(*samples: Sample) -> Dataset:
    return Dataset(tuple(sorted(samples, key=lambda item: item.id)))
