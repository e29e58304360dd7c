from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest

from tests.validators.quality.rows import dataset, own, row, rows
from validators.contracts.dataset import Dataset, Sample
from validators.contracts.quality import (
    ClippingRule,
    ColumnRules,
    Consequence,
    LabelRules,
    QualityRules,
)
from validators.contracts.verdict import Outcome
from validators.quality.columns import judge_categories, judge_clipping, judge_columns
from validators.quality.frames import modality_frame, present_modalities
from validators.quality.reference import MAX_CATEGORIES, reference_of

RULES = ColumnRules()


def measured(samples: list[Sample], **measures: float) -> Dataset:
    return dataset(*(replace(item, media=(own(item.id, "image", **measures),)) for item in samples))


def tables(data: Dataset) -> dict[str, pd.DataFrame]:
    return {name: modality_frame(data, name) for name in present_modalities(data)}


def columns(data: Dataset, rules: ColumnRules = RULES) -> dict[tuple[str, str], Outcome]:
    found = judge_columns(tables(data), rules, minimum_samples=20)
    return {(item.code, item.subject): item.outcome for item in found}


@pytest.mark.parametrize(
    ("count", "measures", "found"),
    [
        (20, {}, {}),
        (20, {"brightness": 90.0}, {("constant-column", "image.brightness"): Outcome.WARN}),
        (19, {"brightness": 90.0}, {}),  # fewer than decide
        (20, {"width_px": 640.0}, {}),  # a size may be constant
        (1, {"brightness": math.nan}, {("empty-column", "image.brightness"): Outcome.FAIL}),
        (20, {"hue": math.inf}, {("empty-column", "image.hue"): Outcome.FAIL}),
        (20, {"hue": 0.0}, {("constant-column", "image.hue"): Outcome.WARN}),
    ],
)
def test_what_never_changes_or_was_never_measured(
    count: int, measures: dict[str, float], found: dict[tuple[str, str], Outcome]
) -> None:
    assert columns(measured(rows(count), **measures)) == found


def test_the_file_says_which_measures_may_be_constant_and_what_the_others_do() -> None:
    data = measured(rows(20), hue=0.0)
    assert columns(data, replace(RULES, ignore=("hue", "width_px", "height_px"))) == {}
    strict = replace(RULES, constant=Consequence.FAIL)
    assert columns(data, strict) == {("constant-column", "image.hue"): Outcome.FAIL}
    assert columns(data, replace(RULES, constant=Consequence.OFF)) == {}


def tagged(**tags: str) -> Dataset:
    return dataset(*(row(f"s{at}", **tags) for at in range(3)))


def unseen(data: Dataset, earlier: Dataset | None, labels: LabelRules | None = None) -> list[str]:
    rules = QualityRules(labels=labels)
    reference = reference_of(earlier, rules) if earlier else None
    return [item.subject for item in judge_categories(data, RULES, labels, reference)]


def test_a_category_that_was_never_seen_is_told() -> None:
    assert unseen(tagged(weather="snow"), tagged(weather="sun")) == ["tag.weather"]
    assert unseen(tagged(weather="sun"), tagged(weather="sun")) == []
    assert unseen(tagged(weather="snow"), None) == []


def test_what_the_lineage_gate_compares_and_the_classes_are_not_told_twice() -> None:
    assert unseen(tagged(sensor="b", kind="owl"), tagged(sensor="a", kind="cat"),
                  LabelRules(tag="kind")) == []  # fmt: skip


def test_a_tag_that_names_things_rather_than_kinds_is_not_compared() -> None:
    many = dataset(*(row(f"s{at}", order=str(at)) for at in range(MAX_CATEGORIES + 1)))
    assert unseen(many, tagged(order="x")) == []


@pytest.mark.parametrize(("share", "found"), [(0.0, []), (0.001, []), (0.0011, ["audio"])])
def test_a_recording_at_full_scale_is_clipped(share: float, found: list[str]) -> None:
    data = dataset(
        replace(row("loud"), media=(own("loud", "audio", clipped_share=share),)),
        row("soft", "audio"),
    )
    assert [item.subject for item in judge_clipping(tables(data), ClippingRule())] == found
    assert list(judge_clipping(tables(data), ClippingRule(Consequence.OFF, 0.0))) == []
