"""What the drift gate says, finding by finding, each with what to do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from validators.contracts.verdict import Finding, Outcome
from validators.drift.columns import OTHER, Categories
from validators.drift.comparison import Compared
from validators.drift.dependence import Dependence
from validators.drift.joining import Siblings, comparable
from validators.drift.settings import DriftSettings, Kind
from validators.drift.window import DriftWindow

GATE = "drift"

SURPRISE = 1e-3
"""A category that the reference would have shown with all but this probability is new."""

_MEANING = {
    Kind.SCALAR: "largest difference of the two distribution functions",
    Kind.CATEGORY: "share of rows that changed category",
    Kind.ABSENCE: "difference of the shares of rows without it",
    Kind.VECTORS: "how much better than chance a line tells the two windows apart",
    Kind.PAIRS: "share of pairs that no longer belong together",
}


def drifted(result: Compared, limit: float) -> Finding:
    return Finding(
        GATE, "drifted", result.name, Outcome.FAIL, round(result.effect, 4), limit,
        f"Look at how {result.name} changed ({_MEANING[result.kind]}; p = "
        f"{result.tested.adjusted:.2g} over all that was tested); retrain, or make this data the "
        "reference if the change is meant.",
    )  # fmt: skip


def more_drifted(count: int) -> Finding:
    return Finding(
        GATE, "more-drifted", "slices", Outcome.FAIL, float(count), 0.0,
        "As many further features and slices drifted; mend the first ones and judge again.",
    )  # fmt: skip


def too_few(name: str, count: int, minimum: int) -> Finding:
    return Finding(
        GATE, "too-few-samples", name, Outcome.INCONCLUSIVE, float(count), float(minimum),
        "Collect more samples before judging drift, or lower gates.drift.minimum_samples.",
    )  # fmt: skip


def not_finished(champion_exists: bool) -> Finding:
    if champion_exists:
        return Finding(
            GATE, "reference-lost", "reference", Outcome.INCONCLUSIVE, "none", "the champion's",
            "Restore the champion's drift window, or measure it again from its data set.",
        )  # fmt: skip
    return Finding(
        GATE, "first-release", "reference", Outcome.WARN, "none", "a reference",
        "Nothing to compare with: this run becomes the reference, checked on its two halves.",
    )  # fmt: skip


def without_origin(which: str) -> Finding:
    return Finding(
        GATE, "no-origin", which, Outcome.INCONCLUSIVE,
        f"{which} has no origin: it was written in the first format, without the encoder version",
        "a window that names who made its vectors",
        "Measure it again from its data set; vectors of an unknown encoder are never compared.",
    )  # fmt: skip


def other_encoders(
    reference: DriftWindow, current: DriftWindow, siblings: Siblings
) -> Iterator[Finding]:
    """Modalities whose vectors are of two encoder versions: refused, not compared."""
    for name in sorted({*reference.embeddings} & {*current.embeddings}):
        one, other = reference.embeddings[name], current.embeddings[name]
        if comparable(one, other, siblings) or one.origin is None or other.origin is None:
            continue
        yield Finding(
            GATE, "other-encoder", f"embedding.{name}", Outcome.ERROR,
            f"{other.origin.describe()}, {other.space} [{other.vectors.shape[1]}]",
            f"{one.origin.describe()}, {one.space} [{one.vectors.shape[1]}]",
            "Encode the reference's data again with the encoder that made this window, or compare "
            "with a window that the same encoder version made.",
        )  # fmt: skip


def missing(reference: DriftWindow, current: DriftWindow) -> Iterator[Finding]:
    there, here = _names(reference), _names(current)
    for name in sorted(there ^ here):
        side = "the reference" if name in here else "this window"
        if name.startswith("tag."):  # a way to slice by, not a measurement that was lost
            yield Finding(
                GATE, "tag-missing", name, Outcome.WARN, f"absent from {side}", "in both windows",
                "Tag both windows alike, or read this one without slices by it.",
            )  # fmt: skip
            continue
        yield Finding(
            GATE, "feature-missing", name, Outcome.INCONCLUSIVE, f"absent from {side}",
            "in both windows", "Measure the feature in both windows, or remove it from both.",
        )  # fmt: skip


def new_categories(reference: DriftWindow, current: DriftWindow) -> Iterator[Finding]:
    """Categories that a reference of its size would hardly have missed."""
    for prefix, one, other in (
        ("", reference.categories, current.categories),
        ("tag.", reference.tags, current.tags),
    ):
        for name in sorted({*one} & {*other}):
            yield from _new(prefix + name, one[name], other[name])


def _new(subject: str, reference: Categories, current: Categories) -> Iterator[Finding]:
    if OTHER in reference.vocabulary:
        return
    known, now = reference.counts(), current.counts()
    before, total = sum(known.values()), max(sum(now.values()), 1)
    for word, count in sorted(now.items()):
        share = count / total
        if known.get(word) or not count or before * np.log1p(-min(share, 0.999)) > np.log(SURPRISE):
            continue
        yield Finding(
            GATE, "new-category", f"{subject}={word}", Outcome.WARN, round(share, 4),
            f"none of {before} in the reference",
            "Check that the model was made for it; make it part of the reference if it is meant.",
        )  # fmt: skip


def dependence_findings(
    dependence: Dependence, current: DriftWindow, settings: DriftSettings
) -> Iterator[Finding]:
    """Repetitions, rows that depend on each other, and times that cannot be."""
    for which, found in (("reference", dependence.reference), ("window", dependence.current)):
        if dependence.reason == "repetitions" and found.repeated > 0:
            yield Finding(
                GATE, "repeated-rows", which, Outcome.WARN, round(found.repeated, 4), 0.5,
                "Record each item once: rows that repeat another one were counted as one.",
            )  # fmt: skip
        if dependence.reason != "none" and found.worth < settings.minimum_samples:
            yield Finding(
                GATE, "too-few-independent", which, Outcome.INCONCLUSIVE, round(found.worth, 1),
                float(settings.minimum_samples), f"Record for longer: its {found.rows} rows are "
                f"worth no more independent ones ({dependence.reason}).",
            )  # fmt: skip
    yield from _times(current)


def _times(window: DriftWindow) -> Iterator[Finding]:
    """Rows recorded outside of the window's own span, as after a change of time zone."""
    if window.times_ms is None or not window.rows:
        return
    early = 0 if window.from_ms is None else window.from_ms - int(window.times_ms.min())
    late = 0 if window.until_ms is None else int(window.times_ms.max()) - window.until_ms
    outside_s = max(early, late) / 1000
    if outside_s <= 0:
        return
    yield Finding(
        GATE, "impossible-time", "window", Outcome.WARN, f"{outside_s:g} s outside of its span",
        "within the window's span",
        "Set the recorder's clock to UTC; drift was judged in the order of these times.",
    )  # fmt: skip


def _names(window: DriftWindow) -> set[str]:
    return {
        *window.descriptors, *window.categories,
        *(f"tag.{name}" for name in window.tags),
        *(f"embedding.{name}" for name in window.embeddings),
    }  # fmt: skip
