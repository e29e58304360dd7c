"""Measures and tags over all samples: what never changes, is never there, was never seen before,
and recordings at full scale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from validators.contracts.dataset import FINGERPRINTS, Dataset
from validators.contracts.quality import ClippingRule, ColumnRules, LabelRules
from validators.contracts.verdict import Finding
from validators.quality.frames import MEDIA_TYPE
from validators.quality.reference import QualityReference, categories_of
from validators.quality.rules import finding, named
from validators.quality.words import SAMPLE

CLIPPED = "clipped_share"


Frames = Mapping[str, pd.DataFrame]
"""The table of each modality, as `frames.modality_frame` makes it."""


def judge_columns(frames: Frames, rules: ColumnRules, *, minimum_samples: int) -> Iterator[Finding]:
    """Findings about measures that say nothing."""
    for modality, frame in frames.items():
        for name in frame.columns.difference([SAMPLE, MEDIA_TYPE, *FINGERPRINTS]):
            values = frame[name].to_numpy(np.float64)
            there = values[~np.isnan(values)]
            subject = f"{modality}.{name}"
            if not len(there):
                yield from finding(
                    rules.empty, "empty-column", subject, f"no number in {len(values)} samples",
                    "a number in some", remedy="Look at what measures it: it measured nothing.",
                )  # fmt: skip
            elif (
                name not in rules.ignore
                and len(there) >= minimum_samples
                and (there == there[0]).all()
            ):
                yield from finding(
                    rules.constant, "constant-column", subject,
                    f"{there[0]:.6g} in all {len(there)} samples", "values that differ",
                    remedy="Look at the sensor and at how the data were copied; or add it to "
                    "gates.quality.columns.ignore.",
                )  # fmt: skip


def judge_categories(
    dataset: Dataset,
    rules: ColumnRules,
    labels: LabelRules | None,
    reference: QualityReference | None,
) -> Iterator[Finding]:
    """Findings about values of tags that the reference never had."""
    if reference is None:
        return
    for tag, values in sorted(categories_of(dataset, labels).items()):
        before = reference.categories.get(tag)
        new = sorted(values - before) if before else []
        if new:
            yield from finding(
                rules.unseen, "unseen-category", f"tag.{tag}",
                f"{len(new)} new: {named([value[:64] for value in new])}",
                f"the {len(before or ())} values of before",
                remedy="Check that these are meant, and not spelt in another way.",
            )  # fmt: skip


def judge_clipping(frames: Frames, rule: ClippingRule) -> Iterator[Finding]:
    """Findings about recordings at full scale, one for each modality that has them."""
    for modality, frame in frames.items():
        if CLIPPED not in frame.columns:
            continue
        shares = frame[CLIPPED].to_numpy(np.float64)
        loud = np.flatnonzero(shares > rule.share)
        if len(loud):
            order = loud[np.argsort(-shares[loud], kind="stable")]
            worst = [str(name) for name in frame[SAMPLE].to_numpy()[order]]
            yield from finding(
                rule.outcome, "clipped", modality,
                f"{len(loud)} recordings, at most {shares[order[0]]:.2%} of one: {named(worst)}",
                f"{rule.share:.2%} of a recording at 0 dBFS",
                remedy="Record again with less gain: what was cut off cannot be restored.",
            )  # fmt: skip
