"""Classes: their balance, those that vanished, those that nobody declared, and their order.

A class whose place in the order changed is the worst of them: nothing is missing and every number
is plausible, while each answer is called by another's name.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from validators.contracts.dataset import Dataset
from validators.contracts.quality import Consequence, LabelRules
from validators.contracts.verdict import Finding
from validators.quality.reference import QualityReference, classes_of, places_of
from validators.quality.rules import finding, named

SUBJECT = "classes"


def judge_labels(
    dataset: Dataset,
    rules: LabelRules,
    reference: QualityReference | None,
    *,
    minimum_samples: int,
) -> Iterator[Finding]:
    """Findings about the classes of a data set."""
    classes = classes_of(dataset, rules)
    counts = Counter(classes.values())
    yield from _unlabelled(dataset, rules, len(classes))
    yield from _balance(counts, rules, minimum_samples)
    if rules.classes:
        unknown = sorted(counts.keys() - set(rules.classes))
        yield from _listed(rules.unknown, "class-unknown", unknown, "one of the declared classes",
                           "Declare these classes, or mend the samples.")  # fmt: skip
    yield from _order(dataset, rules, reference)
    if reference is not None:
        gone = sorted(reference.classes.keys() - counts.keys())
        yield from _listed(
            rules.vanished, "class-vanished", gone, f"all {len(reference.classes)} of before",
            "Bring samples of these classes, or release without them on purpose.",
        )  # fmt: skip


def label_metrics(dataset: Dataset, rules: LabelRules) -> dict[str, float]:
    """How many classes, the largest one's share, and the entropy over that of equal classes."""
    counts = Counter(classes_of(dataset, rules).values())
    total = sum(counts.values())
    if not total:
        return {"classes": 0.0}
    return {
        "classes": float(len(counts)),
        "class_largest_share": max(counts.values()) / total,
        "class_evenness": evenness(counts),
    }


def evenness(counts: Mapping[str, int]) -> float:
    """Shannon's entropy over its largest value, 0..1 (Pielou, 1966); 1 for a single class."""
    total = sum(counts.values())
    if len(counts) < 2:
        return 1.0
    shares = [count / total for count in counts.values()]
    return -math.fsum(share * math.log(share) for share in shares) / math.log(len(shares))


def _unlabelled(dataset: Dataset, rules: LabelRules, labelled: int) -> Iterator[Finding]:
    if dataset.samples and not labelled:
        yield from finding(
            rules.unknown, "class-missing", SUBJECT, "no sample has a class",
            f"the tag {rules.tag}" if rules.tag else "a caption",
            remedy="Name the tag that holds the class in gates.quality.labels.tag.",
        )  # fmt: skip


def _balance(
    counts: Mapping[str, int], rules: LabelRules, minimum_samples: int
) -> Iterator[Finding]:
    total = sum(counts.values())
    if total < minimum_samples:
        return
    largest = max(counts, key=lambda name: (counts[name], name))
    share = counts[largest] / total
    if share > rules.largest_share:
        yield from finding(
            rules.imbalance, "class-imbalance", largest[:128],
            f"{share:.1%} of {total} samples, evenness {evenness(counts):.2f}",
            f"{rules.largest_share:.4g} of them at most",
            remedy="Bring more samples of the other classes.",
        )  # fmt: skip
    rare = sorted(name for name, count in counts.items() if count < rules.minimum_count)
    if rare:
        shown = named([f"{name[:64]} ({counts[name]})" for name in rare])
        yield from finding(
            rules.rare, "class-rare", SUBJECT, f"{len(rare)} of {len(counts)} classes: {shown}",
            f"{rules.minimum_count} samples or more", remedy="Bring more samples of these classes.",
        )  # fmt: skip


def _order(
    dataset: Dataset, rules: LabelRules, reference: QualityReference | None
) -> Iterator[Finding]:
    said = places_of(dataset, rules)
    declared = {name: str(place) for place, name in enumerate(rules.classes)}
    wrong = _twice(said)
    wrong += [
        f"{name} is {place}, declared {declared[name]}"
        for name, place in said
        if name in declared and place.strip() != declared[name]
    ]
    if reference is not None:
        before = dict(reference.places) | {
            name: str(place) for place, name in enumerate(reference.order)
        }
        now = dict(said) | declared
        wrong += [
            f"{name} is {now[name]}, was {before[name]}"
            for name in sorted(now.keys() & before.keys())
            if now[name].strip() != before[name].strip()
        ]
    yield from _listed(
        rules.reordered, "class-order", wrong, "the order of before",
        "Give each class the place that it had: the model answers with places, not with names.",
    )  # fmt: skip


def _twice(said: Sequence[tuple[str, str]]) -> list[str]:
    """Classes with two places, and places with two classes."""
    places, names = Counter(place for _, place in said), Counter(name for name, _ in said)
    both = [f"{name} has {count} places" for name, count in sorted(names.items()) if count > 1]
    return both + [
        f"{place[:64]} is the place of {count} classes"
        for place, count in sorted(places.items())
        if count > 1
    ]


def _listed(
    consequence: Consequence, code: str, items: Sequence[str], wanted: str, remedy: str
) -> Iterator[Finding]:
    if items:
        shown = named([item[:160] for item in items])
        yield from finding(
            consequence, code, SUBJECT, f"{len(items)}: {shown}", wanted, remedy=remedy
        )
