"""The lineage gate of a release: its data set against what the champion was made from.

Refused: a sample without its tags, or with a value that is no tag; and what `compare` refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from validators.contracts.dataset import Dataset, Sample
from validators.contracts.digest import Digest
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude
from validators.lineage.compare import GATE, compare_lineage
from validators.lineage.settings import LineageSettings
from validators.lineage.summary import LineageSummary, summarise
from validators.lineage.tags import clean_tag, find_tag_fault

__all__ = ["GATE", "MAX_REFUSED", "LineageSettings", "assess_lineage"]

MAX_REFUSED = 100
"""Samples that are refused one by one, by id; the rest is counted."""

_TAG_IT = (
    "Tag the sample with its sensor, channels, lighting and source: a sample of unknown origin is "
    "not released."
)
_PLAIN = "Write the tag as short plain text, without control or invisible characters."


def assess_lineage(
    dataset: Dataset,
    reference: LineageSummary | None,
    *,
    champion_exists: bool,
    settings: LineageSettings | None = None,
    preprocessing: Mapping[str, Digest] | None = None,
) -> Verdict:
    """Judge a data set against the lineage of the data that the champion was made from.

    `preprocessing` is what was done to the media of each modality. Without a reference the answer
    is WARN while there is no champion, and INCONCLUSIVE where there is one: a lost reference is no
    reason to pass.
    """
    rules = settings or LineageSettings()
    current = summarise(dataset, preprocessing)
    refused = _named(dataset, rules)
    if reference is None:
        metrics = {"samples": float(current.samples), "modalities": float(len(current.modalities))}
        if current.brightness is not None:
            metrics["brightness_mean"] = current.brightness.mean
        findings = [*refused, _no_reference(champion_exists)]
        return conclude(GATE, findings, examined=current.samples, metrics=metrics)
    compared = compare_lineage(reference, current, rules)
    told = {item.code for item in refused} | {"nothing-measured"}  # by the id of each sample
    by_id = [*refused, *(item for item in compared.findings if item.code not in told)]
    return conclude(GATE, by_id, examined=current.samples, metrics=dict(compared.metrics))


def _named(dataset: Dataset, rules: LineageSettings) -> list[Finding]:
    found = [item for sample in dataset.samples for item in _refused(sample, rules)]
    more = len(found) - MAX_REFUSED
    if more <= 0:
        return found
    others = Finding(GATE, "missing-tag", "others", Outcome.FAIL, f"{more} more", "none", _TAG_IT)
    return [*found[:MAX_REFUSED], others]


def _refused(sample: Sample, rules: LineageSettings) -> Iterator[Finding]:
    tags = sample.tag_map()
    missing = [
        name for name in rules.required_tags if not clean_tag(tags.get(name, "")).strip(" +")
    ]
    if missing:
        yield Finding(
            GATE, "missing-tag", sample.id, Outcome.FAIL, "without " + ", ".join(missing),
            ", ".join(rules.required_tags), _TAG_IT,
        )  # fmt: skip
    for name in rules.required_tags:
        fault = find_tag_fault(tags.get(name, ""))
        if fault is not None:
            yield Finding(
                GATE, "bad-tag", sample.id, Outcome.FAIL, f"{name} {fault}", "a plain text", _PLAIN
            )


def _no_reference(champion_exists: bool) -> Finding:
    if champion_exists:
        return Finding(
            GATE, "reference-lost", "reference", Outcome.INCONCLUSIVE, "none", "the champion's",
            "Restore the champion's lineage summary, or release with a plan that replaces it.",
        )  # fmt: skip
    return Finding(
        GATE, "first-release", "reference", Outcome.WARN, "none", "a reference",
        "Read the tags once by hand: this run becomes the reference.",
    )  # fmt: skip
