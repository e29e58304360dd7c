"""The audit itself: every medium of a de-identified data set, its ids and tags."""

from __future__ import annotations

import io
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from PIL import Image

from services.privacy_audit import faces, identifiers, names
from services.privacy_audit.formats import has_extra_chunks, is_sound, is_voice_descriptor
from validators.contracts.dataset import Dataset, Media, Sample
from validators.contracts.ports import ObjectStore
from validators.privacy.gate import AuditCounts, PrivacyFind

MAX_PIXELS = 40_000_000


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found, how much was looked at, and with what."""

    finds: tuple[PrivacyFind, ...]
    counts: AuditCounts
    detectors: tuple[str, ...]


class NotExamined(Exception):
    """No detector here can look into this medium; the reason is a stable code."""


def audit(
    dataset: Dataset,
    released: ObjectStore,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """Look for faces, voices, names, contacts and numbers in everything that is to be released.

    Raises:
        Refused: an object's bytes are not what its digest says.
        NotFound: an object is missing.  Unavailable: the store is down.
    """
    finds: list[PrivacyFind] = []
    examined: Counter[str] = Counter()
    unexamined: Counter[str] = Counter()
    for position, sample in enumerate(dataset.samples, start=1):
        label = _label(sample, position)
        finds += _sample_finds(sample, label)
        for media in sample.media:
            try:
                finds += _media_finds(label, media, released.get(media.digest))
                examined[media.modality] += 1
            except NotExamined as reason:
                unexamined[f"{media.modality}: {reason}"] += 1
        if progress:
            progress(position, len(dataset.samples))
    counts = AuditCounts(
        len(dataset.samples), tuple(sorted(examined.items())), tuple(sorted(unexamined.items()))
    )
    return Audit(tuple(finds), counts, detectors())


def detectors() -> tuple[str, ...]:
    """The detectors with their versions."""
    return faces.version(), identifiers.version(), names.version(), "formats 1"


def _media_finds(sample: str, media: Media, data: bytes) -> Iterator[PrivacyFind]:
    if media.media_type.startswith("audio/") or is_sound(data):
        return iter([PrivacyFind(sample, media.modality, "voice", ())])
    if media.media_type == "image/png":
        return iter(_picture_finds(sample, media.modality, data))
    if media.media_type == "text/plain":
        return iter(_text_finds(sample, media.modality, _decode(data)))
    if media.media_type.endswith("+json") and is_voice_descriptor(data):
        return iter(())
    raise NotExamined("unknown form")


def _picture_finds(sample: str, modality: str, data: bytes) -> list[PrivacyFind]:
    finds = [PrivacyFind(sample, modality, "metadata", ())] if has_extra_chunks(data) else []
    try:
        with Image.open(io.BytesIO(data), formats=("PNG",)) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise NotExamined("too large")
            pixels = np.asarray(picture.convert("RGB"), dtype=np.uint8)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise NotExamined("not a picture") from error
    return finds + [
        PrivacyFind(sample, modality, "face", face.box, face.strong)
        for face in faces.find_faces(pixels)
    ]


def _text_finds(sample: str, modality: str, text: str) -> list[PrivacyFind]:
    finds = _written_finds(sample, modality, text)
    # Numbers are found in any script; names only in Latin letters, so without a find there the
    # text counts as not examined.
    if not finds and any(char.isalpha() and not _latin(char) for char in text):
        raise NotExamined("script without a name detector")
    return finds


def _written_finds(sample: str, modality: str, text: str) -> list[PrivacyFind]:
    plain = names.blank_placeholders(text)
    finds = [
        PrivacyFind(sample, modality, item.kind, (item.start, item.end))
        for item in identifiers.find_identifiers(plain)
    ]
    finds += [
        PrivacyFind(sample, modality, "name", (item.start, item.end), item.strong)
        for item in names.find_names(plain)
    ]
    return finds


def _sample_finds(sample: Sample, label: str) -> list[PrivacyFind]:
    """What the id and the tags give away: file names and device names often hold a person's."""
    finds = [item for item in _written_finds(label, "id", _spaced(sample.id)) if item.strong]
    for _, value in sample.tags:
        finds += [item for item in _written_finds(label, "tags", _spaced(value)) if item.strong]
    return finds


def _label(sample: Sample, position: int) -> str:
    """The sample's id, or its place in the data set where the id itself gives someone away."""
    revealing = any(item.strong for item in _written_finds("", "id", _spaced(sample.id)))
    return f"sample-{position}" if revealing else sample.id


def _spaced(text: str) -> str:
    return text.replace("_", " ").replace("-", " ")


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotExamined("not text") from error


def _latin(char: str) -> bool:
    return unicodedata.name(char, "").startswith("LATIN")
