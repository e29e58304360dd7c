"""What a later data set is compared with: the classes and the tags' values of an earlier one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from validators.contracts.dataset import RECORDING_TAG, SPLIT_TAG, Dataset, Sample
from validators.contracts.quality import LabelRules, QualityRules

CAPTION_MODALITY = "text"
MAX_CATEGORIES = 64
"""A tag with more values than this names things rather than kinds, and is not compared."""

COMPARED_ELSEWHERE = frozenset(
    {"sensor", "channels", "lighting", "source", SPLIT_TAG, RECORDING_TAG}
)
"""The lineage gate compares these, or they are no property of what was recorded."""


@dataclass(frozen=True, slots=True)
class QualityReference:
    """An earlier data set. `order` is the declared order of its classes, where there was one."""

    samples: int
    classes: Mapping[str, int]  # how many samples each has
    places: Mapping[str, str] = field(default_factory=dict)  # class to its place, from the tag
    order: tuple[str, ...] = ()
    categories: Mapping[str, frozenset[str]] = field(default_factory=dict)


def reference_of(
    dataset: Dataset, rules: QualityRules, order: tuple[str, ...] = ()
) -> QualityReference:
    """What a data set says to those that come after it."""
    labels = rules.labels
    return QualityReference(
        samples=len(dataset.samples),
        classes=Counter(classes_of(dataset, labels).values()) if labels else {},
        places=dict(places_of(dataset, labels)) if labels else {},
        order=order,
        categories=categories_of(dataset, labels),
    )


def classes_of(dataset: Dataset, rules: LabelRules) -> dict[str, str]:
    """The class of each sample that has one, by id.

    A caption as a class goes by its digest: no text is read, and none is told.
    """
    found = {}
    for sample in dataset.samples:
        name = _class(sample, rules)
        if name:
            found[sample.id] = name
    return found


def places_of(dataset: Dataset, rules: LabelRules) -> list[tuple[str, str]]:
    """Every (class, place) that the samples say, each once, in order."""
    if rules.index is None:
        return []
    said = {
        (name, place)
        for sample in dataset.samples
        if (name := _class(sample, rules)) and (place := sample.tag_map().get(rules.index))
    }
    return sorted(said)


def categories_of(dataset: Dataset, labels: LabelRules | None) -> dict[str, frozenset[str]]:
    """The values of each tag that is compared."""
    left_out = COMPARED_ELSEWHERE | {labels.tag or "", labels.index or ""} if labels else set()
    values: dict[str, set[str]] = {}
    for sample in dataset.samples:
        for name, value in sample.tags:
            if name not in left_out and name not in COMPARED_ELSEWHERE:
                values.setdefault(name, set()).add(value)
    return {
        name: frozenset(found) for name, found in values.items() if len(found) <= MAX_CATEGORIES
    }


def _class(sample: Sample, rules: LabelRules) -> str | None:
    if rules.tag is not None:
        return sample.tag_map().get(rules.tag, "").strip() or None
    caption = sample.find(CAPTION_MODALITY)
    return f"caption {caption.digest[7:19]}" if caption else None
