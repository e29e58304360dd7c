"""Training and serving lineage compared.

Refused: a sample without its tags; a modality or a channel set that the reference never saw (an
RGB+IR camera in front of an encoder that learnt RGB). Alerted: a sensor, a lighting or a source
that is new, and pictures whose mean brightness moved by more than a fifth of the reference's and
by more than sampling noise explains (a mean of 142.3 against 89.7 alerts).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from validators.contracts.dataset import Dataset, Sample
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude
from validators.lineage.summary import REQUIRED_TAGS, Brightness, LineageSummary, summarise

GATE = "lineage"


@dataclass(frozen=True, slots=True)
class LineageSettings:
    required_tags: tuple[str, ...] = REQUIRED_TAGS
    brightness_shift: float = 0.2  # share of the reference's mean
    brightness_z: float = 2.0  # standard errors that a shift must exceed


def assess_lineage(
    dataset: Dataset,
    reference: LineageSummary | None,
    *,
    champion_exists: bool,
    settings: LineageSettings | None = None,
) -> Verdict:
    """Judge a data set against the lineage of the data that the champion was made from.

    Without a reference the answer is WARN while there is no champion, and INCONCLUSIVE where there
    is one: a lost reference is no reason to pass.
    """
    rules = settings or LineageSettings()
    current = summarise(dataset)
    findings = [item for sample in dataset.samples for item in _untagged(sample, rules)]
    if reference is None:
        findings.append(_no_reference(champion_exists))
    else:
        findings += _unseen(current, reference)
        findings += _brightness(current.brightness, reference.brightness, rules)
    metrics = {"samples": float(current.samples), "modalities": float(len(current.modalities))}
    if current.brightness:
        metrics["brightness_mean"] = current.brightness.mean
    return conclude(GATE, findings, examined=current.samples, metrics=metrics)


def _untagged(sample: Sample, rules: LineageSettings) -> Iterable[Finding]:
    tags = sample.tag_map()
    missing = [name for name in rules.required_tags if not tags.get(name, "").strip()]
    if missing:
        yield Finding(
            GATE, "missing-tag", sample.id, Outcome.FAIL, "without " + ", ".join(missing),
            ", ".join(rules.required_tags), "Tag the sample with its sensor, channels, lighting "
            "and source: a sample of unknown origin is not released.",
        )  # fmt: skip


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


def _unseen(current: LineageSummary, reference: LineageSummary) -> Iterable[Finding]:
    rows = (
        ("unseen-modality", Outcome.FAIL, current.modalities, reference.modalities),
        ("unseen-channels", Outcome.FAIL, current.channels, reference.channels),
        ("new-sensor", Outcome.WARN, current.sensors, reference.sensors),
        ("new-lighting", Outcome.WARN, current.lighting, reference.lighting),
        ("new-source", Outcome.WARN, current.sources, reference.sources),
        ("absent-modality", Outcome.WARN, reference.modalities, current.modalities),
        ("absent-channels", Outcome.WARN, reference.channels, current.channels),
    )
    for code, outcome, here, there in rows:
        for value in sorted(set(here) - set(there)):
            yield Finding(
                GATE, code, value, outcome, value, ", ".join(there) or "none", _REMEDIES[code]
            )


_REMEDIES = {
    "unseen-modality": "Train on this modality first, or leave it out of the release.",
    "unseen-channels": "Train on these channels first, or convert to the reference's channels.",
    "new-sensor": "Check that the new sensor is meant, and watch the drift gate.",
    "new-lighting": "Check that the new lighting is meant, and watch the drift gate.",
    "new-source": "Check that the new source is meant, and watch the drift gate.",
    "absent-modality": "Check that the modality was left out on purpose.",
    "absent-channels": "Check that the channels were left out on purpose.",
}


def _brightness(
    current: Brightness | None, reference: Brightness | None, rules: LineageSettings
) -> Iterable[Finding]:
    if current is None or reference is None:
        return
    shift = abs(current.mean - reference.mean)
    noise = math.sqrt(_squared_error(current) + _squared_error(reference))
    relative = shift / max(reference.mean, 1.0)
    if relative > rules.brightness_shift and shift > rules.brightness_z * noise:
        yield Finding(
            GATE, "brightness-shift", "image", Outcome.WARN,
            round(current.mean, 1), round(reference.mean, 1),
            "Compare exposure and lighting of the two collections before releasing.",
        )  # fmt: skip


def _squared_error(value: Brightness) -> float:
    return value.deviation**2 / value.pictures
