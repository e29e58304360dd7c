"""Labelled media as values: samples with lineage tags, and the manifest that names a data set.

On disk a user's data set is a folder with `manifest.jsonl`, one object a line:

    {"id": "cat", "image": "media/cat.png", "text": "a sleeping cat", "audio": "media/cat.wav",
     "captured_ms": 0, "tags": {"sensor": "camera", "channels": "RGB", "lighting": "day",
     "source": "studio"}}

`image`, `text`, `audio` are each optional, one at least must be there; `tags` may not be empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from validators.contracts.digest import Digest, digest_value

FINGERPRINTS = ("dhash_0", "dhash_1", "dhash_2", "dhash_3", "tone_blue", "tone_red")
"""Measures that say which picture it is (64 bits of its luma's rises in four parts, and how far
blue and red lie above luma) rather than what it is like: copies are found by them, and no statistic
takes them."""


@dataclass(frozen=True, slots=True)
class Media:
    """One object of a sample.

    `media_type` is an IANA type ("image/png", "audio/wav", "text/plain"). `measures` are cheap
    descriptors taken at ingest (width_px, brightness, duration_ms, characters ...), sorted by name.
    """

    modality: str
    digest: Digest
    media_type: str
    measures: tuple[tuple[str, float], ...] = ()

    def measure(self, name: str) -> float | None:
        return dict(self.measures).get(name)


@dataclass(frozen=True, slots=True)
class Sample:
    """One labelled example. `tags` are its lineage (sensor, channels, lighting, source ...)."""

    id: str
    media: tuple[Media, ...]
    tags: tuple[tuple[str, str], ...]
    captured_ms: float | None = None

    def find(self, modality: str) -> Media | None:
        return next((item for item in self.media if item.modality == modality), None)

    def tag_map(self) -> Mapping[str, str]:
        return dict(self.tags)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row that ingest could not turn into a sample: listed, never dropped in silence."""

    id: str
    reason: str  # a stable code: "corrupt-image", "empty-audio", "missing-file", "duplicate-id"
    detail: str


RECORDING_TAG, SPLIT_TAG = "recording", "split"
"""What a sample was cut from, and what it is for: they tell samples apart, not where they come
from. Samples of one recording are alike, and are kept on one side of every split."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Samples in id order; the digest names exactly these bytes under exactly these tags."""

    samples: tuple[Sample, ...]
    unreadable: tuple[Unreadable, ...] = ()

    @property
    def digest(self) -> Digest:
        return digest_value("dataset", self)
