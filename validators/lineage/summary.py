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
)
from validators.lineage.tags import (
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

_PRUNE_AT = 2 * MAX_VALUES


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
    """Gathers a summary sample by sample, in memory that does not grow with their number."""

    def __init__(self, dataset: Digest | None = None) -> None:
        self._dataset = dataset
        self._whole = LineageSummary(SUMMARY_FORMAT, 0, True, ())
        self._bright: Brightness | None = None
        self._clear()

    def add(self, facts: SampleFacts) -> None:
        """Count one sample. Raises BadInput where a brightness is not finite."""
        bright = None
        for luma in facts.brightness:
            bright = merge_brightness(bright, Brightness.of(luma))
        values = self._values(facts)
        self._samples += 1
        self._bright = merge_brightness(self._bright, bright)
        for name, value in values.items():
            self._count(self._categories, name, value, bright)
        for modality, digest in facts.preprocessing.items():
            self._count(self._preprocessing, f"data.{modality}", digest, None)
        if self._held > _PRUNE_AT:
            self._fold()

    def summary(self) -> LineageSummary:
        """What was counted until now."""
        self._fold()
        return self._whole

    def _values(self, facts: SampleFacts) -> dict[str, str]:
        said = {name: facts.tags.get(name, "") for name in REQUIRED_TAGS}
        parts = {*facts.modalities}
        if any(find_tag_fault(text) for text in (*said.values(), *parts)):
            self._refused += 1
            return {}
        values = {
            name: channel_set(text) if name == "channels" else clean_tag(text)
            for name, text in said.items()
        }
        for name in [name for name, value in values.items() if not value]:
            self._untagged[name] = self._untagged.get(name, 0) + 1
            del values[name]
        values[MODALITIES] = modality_set(parts)
        values[JOINT] = json.dumps(
            [values.get(name, "") for name in (*REQUIRED_TAGS, MODALITIES)],
            ensure_ascii=False, separators=(",", ":"),
        )  # fmt: skip
        return values

    def _count(
        self, counts: dict[str, dict[str, Counted]], name: str, value: str,
        bright: Brightness | None,
    ) -> None:  # fmt: skip
        held = counts.setdefault(name, {})
        before = held.get(value)
        if before is None:
            held[value] = Counted(value, 1, bright)
            self._held += 1
        else:
            both = merge_brightness(before.brightness, bright)
            held[value] = Counted(value, before.samples + 1, both)

    def _fold(self) -> None:
        part = LineageSummary(
            SUMMARY_FORMAT,
            self._samples,
            True,
            _frozen(self._categories),
            _frozen(self._preprocessing),
            (Counts("dataset", (Counted(self._dataset, self._samples),)),)
            if self._dataset and self._samples
            else (),
            tuple(sorted(self._untagged.items())),
            self._refused,
            self._bright,
        )
        self._whole = merge(self._whole, part)
        self._clear()

    def _clear(self) -> None:
        self._samples = self._refused = self._held = 0
        self._categories: dict[str, dict[str, Counted]] = {}
        self._preprocessing: dict[str, dict[str, Counted]] = {}
        self._untagged: dict[str, int] = {}
        self._bright = None


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
