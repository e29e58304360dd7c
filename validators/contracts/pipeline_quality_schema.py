"""The shape of the data-quality gate's section in the user's file, and the rules made of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from validators.contracts.pipeline_keys import Name, Section, Text, key, section
from validators.contracts.quality import (
    MAY_BE_CONSTANT,
    ClippingRule,
    ColumnRules,
    Consequence,
    DuplicateRules,
    LabelRules,
    QualityRules,
    TimeRules,
)

Does = Literal["off", "warn", "fail"]
TagName = Annotated[str, Field(min_length=1, max_length=64)]
ClassName = Annotated[str, Field(min_length=1, max_length=256)]


class DuplicatesSection(Section):
    """One content under several ids."""

    exact: Does = key("The same bytes under two ids.", "warn")
    across_splits: Does = key("The same bytes both trained on and held out.", "fail")
    near: Does = key("Pictures that nearly look the same, on whichever side they are.", "warn")
    near_bits: int = key("Bits of 64 in which two difference hashes may differ.", 3, ge=0, le=3)
    ignore: list[Name] = key("Modalities that may repeat.", ["text"], max_length=16)


class TimesSection(Section):
    """Capture times."""

    impossible: Does = key("A time that is negative, not a number, or ahead of the clock.", "fail")
    future_s: float = key("How far ahead of this machine's clock is bearable.", 86_400.0, unit="s",
                          ge=0)  # fmt: skip
    disorder: Does = key("Times within one recording that do not rise.", "warn")
    repeated: Does = key("One time twice within one recording.", "warn")


class LabelsSection(Section):
    """Classes and their balance; left out, no sample has a class."""

    tag: TagName | None = key("The tag that holds the class; left out, the caption is it.", None)
    index: TagName | None = key("The tag that holds the class's place in the order.", None)
    classes: list[ClassName] = key("All classes, in order.", [], max_length=10_000)
    minimum_count: int = key("Least samples of a class.", 5, ge=1)
    largest_share: float = key("Most samples that one class may have.", 0.8, unit="share")
    rare: Does = key("A class with fewer samples than minimum_count.", "warn")
    imbalance: Does = key("A class with more than largest_share.", "warn")
    unknown: Does = key("A class that is not among classes.", "fail")
    vanished: Does = key("A class of the champion's data that no sample has.", "fail")
    reordered: Does = key("A class with another place in the order than before.", "fail")


class ColumnsSection(Section):
    """Measures and tags over all samples."""

    constant: Does = key("A measure with one value in all samples.", "warn")
    ignore: list[TagName] = key("Measures that may be constant.", list(MAY_BE_CONSTANT),
                                max_length=256)  # fmt: skip
    empty: Does = key("A measure without a number in any sample.", "fail")
    unseen: Does = key("A value of a tag that the champion's data never had.", "warn")


class ClippingSection(Section):
    """Recordings at full scale, 0 dBFS."""

    outcome: Does = key("What a clipped recording does.", "warn")
    share: float = key("Share of a recording at full scale that is too much.", 0.001, unit="share")


class QualitySection(Section):
    """The data-quality gate."""

    suites: Text | None = key(
        "Folder of edited suites, relative to this file (modalgate quality init writes it); left "
        "out, suites are generated from the contracts.",
        None,
    )
    missing_rate: float = key("Most samples that may lack a modality.", 0.05, unit="share")
    minimum_samples: int = key("Fewer than this decide no share.", 20, ge=1)
    duplicates: DuplicatesSection = section("Repeated content.", DuplicatesSection)
    times: TimesSection = section("Capture times.", TimesSection)
    labels: LabelsSection | None = key("Classes and their balance.", None)
    columns: ColumnsSection = section("Measures and tags over all samples.", ColumnsSection)
    clipping: ClippingSection = section("Recordings at full scale.", ClippingSection)


def build_quality(stated: QualitySection) -> QualityRules:
    """The rules that the section says."""
    copies, times, columns = stated.duplicates, stated.times, stated.columns
    return QualityRules(
        suites=stated.suites,
        minimum_samples=stated.minimum_samples,
        duplicates=DuplicateRules(
            Consequence(copies.exact), Consequence(copies.across_splits), Consequence(copies.near),
            copies.near_bits, tuple(copies.ignore),
        ),
        times=TimeRules(
            Consequence(times.impossible), times.future_s, Consequence(times.disorder),
            Consequence(times.repeated),
        ),
        labels=None if stated.labels is None else _labels(stated.labels),
        columns=ColumnRules(
            Consequence(columns.constant), tuple(columns.ignore), Consequence(columns.empty),
            Consequence(columns.unseen),
        ),
        clipping=ClippingRule(Consequence(stated.clipping.outcome), stated.clipping.share),
    )  # fmt: skip


def _labels(stated: LabelsSection) -> LabelRules:
    return LabelRules(
        tag=stated.tag,
        index=stated.index,
        classes=tuple(stated.classes),
        minimum_count=stated.minimum_count,
        largest_share=stated.largest_share,
        rare=Consequence(stated.rare),
        imbalance=Consequence(stated.imbalance),
        unknown=Consequence(stated.unknown),
        vanished=Consequence(stated.vanished),
        reordered=Consequence(stated.reordered),
    )
