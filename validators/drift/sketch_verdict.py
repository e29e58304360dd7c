"""The drift gate over sketches: tests on the samples, effects on all rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from validators.contracts.verdict import Verdict
from validators.drift.gate import assess_drift
from validators.drift.joining import Siblings
from validators.drift.settings import DriftSettings
from validators.drift.sketches import Counts, Sketch


def assess_sketches(
    reference: Sketch,
    current: Sketch,
    settings: DriftSettings | None = None,
    *,
    siblings: Siblings = (),
) -> Verdict:
    """Judge all rows of `current` against all of `reference`, both sketched by one plan.

    `kernel_distance.<modality>` among the metrics is that of all vectors, beyond chance.
    """
    verdict = assess_drift(
        reference.sample, current.sample, settings, champion_exists=True, siblings=siblings,
        effects=dict(effects_of(reference, current)),
    )  # fmt: skip
    rows = (("rows_sketched_reference", reference.rows), ("rows_sketched_current", current.rows))
    more = [(name, float(count)) for name, count in rows]
    more += kernel_distances(reference, current)
    return replace(verdict, metrics=tuple(sorted([*verdict.metrics, *more])))


def kernel_distances(reference: Sketch, current: Sketch) -> Iterator[tuple[str, float]]:
    """Distance of the mean embeddings, 0 where it is within what chance adds (unbiased)."""
    for name in sorted({*reference.means} & {*current.means}):
        (one, before), (other, now) = reference.means[name], current.means[name]
        scale = 2 / len(one)  # the features of one vector have the length sqrt(size / 2)
        gap = float(np.sum((one / before - other / now) ** 2)) * scale
        pooled = float(np.sum(((one + other) / (before + now)) ** 2)) * scale
        chance = (1 - pooled) * (1 / before + 1 / now)
        yield f"kernel_distance.{name}", float(np.sqrt(max(gap - chance, 0.0)))


def effects_of(reference: Sketch, current: Sketch) -> Iterator[tuple[str, float]]:
    """Effects of scalars, categories and absence, by subject, on every row that was sketched."""
    for name in sorted({*reference.counts} & {*current.counts}):
        kind, _, column = name.partition("/")
        subject = f"tag.{column}" if kind == "tag" else column
        one, other = reference.counts[name], current.counts[name]
        there = reference.rows - one.absent, current.rows - other.absent
        yield f"absence.{subject}", abs(there[0] / max(reference.rows, 1)
                                        - there[1] / max(current.rows, 1))  # fmt: skip
        if min(there) == 0:
            continue
        yield (
            subject,
            _steps(one, other, *there) if kind == "descriptor" else _shares(one, other, *there),
        )


def _steps(one: Counts, other: Counts, before: int, now: int) -> float:
    """Kolmogorov-Smirnov distance at the plan's edges."""
    if not len(one.below) or len(one.below) != len(other.below):
        return 0.0
    return float(np.abs(one.below / before - other.below / now).max())


def _shares(one: Counts, other: Counts, before: int, now: int) -> float:
    """Total variation of the two distributions of words."""
    words = {*one.words} | {*other.words}
    gaps = [abs(one.words.get(word, 0) / before - other.words.get(word, 0) / now) for word in words]
    return sum(gaps) / 2
