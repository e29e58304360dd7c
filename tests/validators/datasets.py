"""Small data sets as values, for the gates' tests. No bytes are behind their digests."""

from __future__ import annotations

from collections.abc import Mapping

from validators.contracts.dataset import Dataset, Media, Sample
from validators.contracts.digest import digest_bytes

TAGS = {"sensor": "camera", "channels": "RGB", "lighting": "day", "source": "studio"}
IMAGE = {
    "width_px": 64.0, "height_px": 48.0, "brightness": 120.0, "contrast": 40.0, "sharpness": 90.0,
}  # fmt: skip
TEXT = {"characters": 14.0, "words": 3.0}
AUDIO = {"duration_ms": 900.0, "rms_db": -20.0, "clipped_share": 0.0}
TYPES = {"image": "image/png", "text": "text/plain", "audio": "audio/wav"}
MEASURES: Mapping[str, Mapping[str, float]] = {"image": IMAGE, "text": TEXT, "audio": AUDIO}


def media(modality: str, **measures: float) -> Media:
    values = {**MEASURES.get(modality, {}), **measures}
    name = TYPES.get(modality, "application/octet-stream")
    content = f"{modality} {sorted(values.items())}".encode()
    return Media(modality, digest_bytes(content), name, tuple(sorted(values.items())))


def sample(name: str, *items: Media, **tags: str) -> Sample:
    chosen = items or (media("image"), media("text"))
    return Sample(name, chosen, tuple(sorted({**TAGS, **tags}.items())))


def dataset(*samples: Sample) -> Dataset:
    return Dataset(tuple(sorted(samples, key=lambda item: item.id)))
