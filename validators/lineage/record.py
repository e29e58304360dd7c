"""What a release keeps of its data's lineage, and each sample's own lineage derived from it.

Nothing is repeated for each sample: what was done to all media of a modality is written down once,
and a sample's record is put together when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from validators.contracts.dataset import Dataset, Sample
from validators.contracts.digest import Digest
from validators.contracts.documents import load
from validators.contracts.errors import NotFound, Refused
from validators.lineage.counts import Brightness
from validators.lineage.preprocessing import Preprocessing
from validators.lineage.summary import MODALITIES, LineageSummary, known_only
from validators.lineage.tags import channel_set, clean_tag

RECORD_FORMAT = 2


@dataclass(frozen=True, slots=True)
class DataChain:
    """What the released data set came from. The digests are of the values, not of documents."""

    source: Digest  # of the user's folder or factory
    location: str  # as the pipeline file names it: "folder data"
    ingested: Digest  # the normalised data set in the quarantine
    policy: str  # of de-identification: name and version
    dataset: Digest  # the de-identified data set


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The source that an encoder was exported from."""

    encoder: str
    source: Digest
    kind: str  # "onnx" or "torch"


@dataclass(frozen=True, slots=True)
class LineageRecord:
    """The document behind a release's lineage.

    `chain` is None, and the others are empty, where an earlier version wrote the document.
    """

    format: int
    summary: LineageSummary
    chain: DataChain | None = None
    preprocessing: tuple[Preprocessing, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()


@dataclass(frozen=True, slots=True)
class MediaLineage:
    """One medium of a sample: what it is now, and the digest of what was done to it."""

    modality: str
    digest: Digest
    media_type: str
    preprocessing: Digest | None  # None: an earlier version did not write it down


@dataclass(frozen=True, slots=True)
class SampleLineage:
    """Everything that is known of where one sample came from."""

    sample: str
    dataset: Digest
    sensor: str
    channels: str
    lighting: str
    source: str
    tags: tuple[tuple[str, str], ...]  # the others
    media: tuple[MediaLineage, ...]
    chain: DataChain | None


def read_record(data: bytes, *, where: str = "") -> LineageRecord:
    """A release's lineage document, of this form or of the first one.

    Raises:
        Refused: neither.
    """
    try:
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError:
        fields = {}
    if "format" in fields:
        record = load(LineageRecord, data, where=where)
        if record.format != RECORD_FORMAT:
            raise Refused(
                f"a lineage record of format {record.format}, and this version reads "
                f"{RECORD_FORMAT}",
                where=where,
                remedy="Read it with the version that wrote it, or release again.",
            )
        return record
    return LineageRecord(RECORD_FORMAT, load(_FirstForm, data, where=where).summary())


def read_summary(data: bytes, *, where: str = "") -> LineageSummary:
    """The summary inside a release's lineage document. Raises Refused."""
    return read_record(data, where=where).summary


def sample_lineage(record: LineageRecord, dataset: Dataset, sample_id: str) -> SampleLineage:
    """The lineage of one sample of the data set that the record is of.

    Raises:
        NotFound: the data set has no such sample.
        Refused: the record is of another data set.
    """
    chain = record.chain
    if chain is not None and chain.dataset != dataset.digest:
        raise Refused(
            "the lineage record is of another data set",
            where=f"{chain.dataset}, not {dataset.digest}",
            remedy="One of the two documents was changed: release again.",
        )
    sample = next((item for item in dataset.samples if item.id == sample_id), None)
    if sample is None:
        raise NotFound(
            f"the data set has no sample {sample_id[:128]!r}",
            where=dataset.digest,
            remedy="Read the ids in the data set's manifest.",
        )
    return _of(sample, dataset.digest, record)


def _of(sample: Sample, dataset: Digest, record: LineageRecord) -> SampleLineage:
    done = {item.modality: item.digest for item in record.preprocessing}
    tags = dict(sample.tags)
    sensor, channels, lighting, source = (
        tags.pop(name, "") for name in ("sensor", "channels", "lighting", "source")
    )
    media = tuple(
        MediaLineage(item.modality, item.digest, item.media_type, done.get(item.modality))
        for item in sample.media
    )
    return SampleLineage(
        sample.id, dataset, clean_tag(sensor), channel_set(channels), clean_tag(lighting),
        clean_tag(source), tuple(sorted(tags.items())), media, record.chain,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _FirstBrightness:
    mean: float
    deviation: float
    pictures: int


@dataclass(frozen=True, slots=True)
class _FirstForm:
    """The form of the first releases: the values of each tag, without counts."""

    samples: int
    modalities: tuple[str, ...]
    channels: tuple[str, ...]
    sensors: tuple[str, ...]
    lighting: tuple[str, ...]
    sources: tuple[str, ...]
    brightness: _FirstBrightness | None = None

    def summary(self) -> LineageSummary:
        categories: dict[str, Sequence[str]] = {
            "channels": [channel_set(value) for value in self.channels],
            "sensor": [clean_tag(value) for value in self.sensors],
            "lighting": [clean_tag(value) for value in self.lighting],
            "source": [clean_tag(value) for value in self.sources],
            MODALITIES: self.modalities,
        }
        return known_only(self.samples, categories, _sums(self.brightness))


def _sums(value: _FirstBrightness | None) -> Brightness | None:
    if value is None or value.pictures < 1:
        return None
    total = round(1000 * value.mean * value.pictures)
    spread = (1000 * value.deviation) ** 2 * (value.pictures - 1)
    return Brightness(value.pictures, total, round(total**2 / value.pictures + spread))
