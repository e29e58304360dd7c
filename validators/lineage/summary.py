"""What the lineage of many samples looks like: one small document that merges and compares.

Summaries of parts merge into that of the whole, in any order and grouping, to the same bytes.
A summary holds counts only: no sample's id, and at most MAX_VALUES values of a category.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from validators.contracts.dataset import Dataset, Sample
from validators.contracts.digest import Digest
from validators.contracts.errors import BadInput
from validators.lineage.counts import (
    MAX_VALUES,
    Brightness,
    Counted,
    Counts,
    keep_counts,
    merge_all,
    merge_brightness,
    merge_counted,
)
from validators.lineage.tags import (
    MAX_TAG_CHARACTERS,
    REQUIRED_TAGS,
    channel_set,
    clean_tag,
    find_tag_fault,
    modality_set,
)

__all__ = [
    "JOINT", "MODALITIES", "REQUIRED_TAGS", "SUMMARY_FORMAT", "Brightness", "LineageSummary",
    "LineageTally", "SampleFacts", "merge", "preprocessed_by", "summarise",
]  # fmt: skip

SUMMARY_FORMAT = 2

MODALITIES = "modalities"
"""The category of which modalities a sample has together: "image+text"."""

JOINT = "joint"
"""The category of all tags and modalities together, a JSON array of their values."""


@dataclass(frozen=True, slots=True)
class SampleFacts:
    """What is known of one sample or request, as it was said. `brightness` is of its pictures."""

    tags: Mapping[str, str]
    modalities: Collection[str]
    brightness: tuple[float, ...] = ()
    preprocessing: Mapping[str, Digest] = field(default_factory=dict)  # by modality


@dataclass(frozen=True, slots=True)
class LineageSummary:
    """Counts of samples by each tag, by their modalities together, and by all of it jointly.

    `counted` is False where only the values are known, from a form without counts. `untagged` has
    the samples that lack a required tag, by tag; `refused` counts those with a value that is no
    tag. `preprocessing` has a category `<stage>.<modality>` each, its values digests; `datasets`
    counts samples by the digest of the data set that they belong to.
    """

    format: int
    samples: int
    counted: bool
    categories: tuple[Counts, ...]
    preprocessing: tuple[Counts, ...] = ()
    datasets: tuple[Counts, ...] = ()
    untagged: tuple[tuple[str, int], ...] = ()
    refused: int = 0
    brightness: Brightness | None = None

    def category(self, name: str) -> Counts:
        return next((item for item in self.categories if item.name == name), Counts(name))

    @property
    def modalities(self) -> tuple[str, ...]:
        """Each modality that any sample has."""
        patterns = self.category(MODALITIES).known
        return tuple(sorted({part for pattern in patterns for part in pattern.split("+") if part}))


class LineageTally:
    """Gathers a summary sample by sample, in memory that does not grow with their number.

    Most samples say the same of themselves: what they say is read once for all of them.
    """

    def __init__(self, dataset: Digest | None = None) -> None:
        self._dataset = dataset
        self._whole = LineageSummary(SUMMARY_FORMAT, 0, True, ())
        self._said: dict[_Said, _Alike] = {}

    def add(self, facts: SampleFacts) -> None:
        """Count one sample. Raises BadInput where a brightness is not finite."""
        pictures = [Brightness.of(luma) for luma in facts.brightness]
        said = (
            tuple(facts.tags.get(name, "")[: MAX_TAG_CHARACTERS + 1] for name in REQUIRED_TAGS),
            frozenset(facts.modalities),
            tuple(sorted(facts.preprocessing.items())),
        )
        alike = self._said.get(said)
        if alike is None:
            if len(self._said) >= MAX_VALUES:
                self._fold()
            alike = self._said[said] = _Alike()
        alike.add(pictures)

    def summary(self) -> LineageSummary:
        """What was counted until now."""
        self._fold()
        return self._whole

    def _fold(self) -> None:
        gathered = _Gathered(self._dataset)
        for (tags, modalities, preprocessing), alike in self._said.items():
            gathered.add(dict(zip(REQUIRED_TAGS, tags, strict=True)), modalities, alike)
            for modality, digest in preprocessing:
                gathered.prepared(f"data.{modality}", digest, alike.samples)
        self._whole = merge(self._whole, gathered.summary())
        self._said.clear()


_Said = tuple[tuple[str, ...], frozenset[str], tuple[tuple[str, Digest], ...]]


class _Alike:
    """Samples that say the same of themselves."""

    __slots__ = ("pictures", "samples", "squares", "total")

    def __init__(self) -> None:
        self.samples = self.pictures = self.total = self.squares = 0

    def add(self, pictures: Iterable[Brightness]) -> None:
        self.samples += 1
        for item in pictures:
            self.pictures += item.pictures
            self.total += item.total
            self.squares += item.squares

    @property
    def brightness(self) -> Brightness | None:
        return Brightness(self.pictures, self.total, self.squares) if self.pictures else None


class _Gathered:
    """What groups of samples said, by category."""

    def __init__(self, dataset: Digest | None) -> None:
        self._dataset = dataset
        self._samples = self._refused = 0
        self._categories: dict[str, dict[str, Counted]] = {}
        self._preprocessing: dict[str, dict[str, Counted]] = {}
        self._untagged: dict[str, int] = {}
        self._brightness: Brightness | None = None

    def add(self, tags: Mapping[str, str], modalities: Collection[str], alike: _Alike) -> None:
        self._samples += alike.samples
        self._brightness = merge_brightness(self._brightness, alike.brightness)
        if any(find_tag_fault(text) for text in (*tags.values(), *modalities)):
            self._refused += alike.samples
            return
        values = {
            name: channel_set(text) if name == "channels" else clean_tag(text)
            for name, text in tags.items()
        }
        values[MODALITIES] = modality_set(modalities)
        joint = json.dumps(list(values.values()), ensure_ascii=False, separators=(",", ":"))
        for name, value in (*values.items(), (JOINT, joint)):
            if value or name == MODALITIES:
                counted = Counted(value, alike.samples, alike.brightness)
                _count(self._categories.setdefault(name, {}), counted)
            else:
                self._untagged[name] = self._untagged.get(name, 0) + alike.samples

    def prepared(self, name: str, digest: Digest, samples: int) -> None:
        _count(self._preprocessing.setdefault(name, {}), Counted(digest, samples))

    def summary(self) -> LineageSummary:
        own = (Counts("dataset", (Counted(self._dataset, self._samples),)),) if (
            self._dataset and self._samples
        ) else ()  # fmt: skip
        return LineageSummary(
            SUMMARY_FORMAT,
            self._samples,
            True,
            _frozen(self._categories),
            _frozen(self._preprocessing),
            own,
            tuple(sorted(self._untagged.items())),
            self._refused,
            self._brightness,
        )


def _count(held: dict[str, Counted], item: Counted) -> None:
    before = held.get(item.value)
    held[item.value] = item if before is None else merge_counted(before, item)


def summarise(
    dataset: Dataset, preprocessing: Mapping[str, Digest] | None = None
) -> LineageSummary:
    """The lineage of a data set; `preprocessing` is what was done to each modality."""
    tally = LineageTally(dataset.digest if dataset.samples else None)
    for sample in dataset.samples:
        tally.add(facts_of(sample, preprocessing or {}))
    return tally.summary()


def facts_of(sample: Sample, preprocessing: Mapping[str, Digest]) -> SampleFacts:
    """What a sample says of itself, and what was done to its media."""
    modalities = {media.modality for media in sample.media}
    return SampleFacts(
        sample.tag_map(),
        modalities,
        tuple(
            value
            for media in sample.media
            if (value := media.measure("brightness")) is not None
        ),
        {name: digest for name, digest in preprocessing.items() if name in modalities},
    )  # fmt: skip


def merge(one: LineageSummary, other: LineageSummary) -> LineageSummary:
    """The summary of the samples of both. Associative and commutative, to the byte."""
    if one.format != other.format:
        raise BadInput(
            f"lineage summaries of the formats {one.format} and {other.format} do not merge",
            where="format",
            remedy="Summarise both again with one version.",
        )
    untagged = dict(one.untagged)
    for name, count in other.untagged:
        untagged[name] = untagged.get(name, 0) + count
    return LineageSummary(
        one.format,
        one.samples + other.samples,
        one.counted and other.counted,
        merge_all(one.categories, other.categories),
        merge_all(one.preprocessing, other.preprocessing),
        merge_all(one.datasets, other.datasets),
        tuple(sorted(untagged.items())),
        one.refused + other.refused,
        merge_brightness(one.brightness, other.brightness),
    )


def preprocessed_by(summary: LineageSummary, encoders: Mapping[str, Digest]) -> LineageSummary:
    """The summary, stating for each modality the preprocessing digest of the encoder that read it.

    Live requests know no ingest, but both training and serving know their encoder's contract: state
    it on both sides, and `compare_lineage` holds them against each other.
    """
    stated = tuple(
        Counts(f"encoder.{modality}", (Counted(digest, summary.samples),))
        for modality, digest in sorted(encoders.items())
    )
    kept = tuple(item for item in summary.preprocessing if not item.name.startswith("encoder."))
    return replace(summary, preprocessing=tuple(sorted(kept + stated, key=lambda c: c.name)))


def _frozen(counts: Mapping[str, Mapping[str, Counted]]) -> tuple[Counts, ...]:
    return tuple(keep_counts(name, held.values()) for name, held in sorted(counts.items()))


def known_only(
    samples: int, categories: Mapping[str, Iterable[str]], brightness: Brightness | None
) -> LineageSummary:
    """A summary of values whose counts nobody wrote down."""
    return LineageSummary(
        SUMMARY_FORMAT,
        samples,
        False,
        tuple(
            keep_counts(name, [Counted(value, 0) for value in sorted(set(values))])
            for name, values in sorted(categories.items())
        ),
        brightness=brightness,
    )
