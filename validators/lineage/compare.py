"""Training and serving lineage compared, as hard facts and as distributions.

Hard facts block: a modality, a channel set or a preprocessing that training never saw, samples
without their tags, values that are no tags. A value of another tag that is new alerts. So do
distributions that moved: by an effect that matters, beyond chance after control over all categories
(Benjamini-Yekutieli), with samples enough; below the minimum nothing is decided.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from validators.contracts.digest import short
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude
from validators.lineage.brightness import find_dark_slices, find_shift
from validators.lineage.counts import MAX_VALUES, Counts
from validators.lineage.divergence import Divergence, diverge
from validators.lineage.multiplicity import permutations_for, rejected
from validators.lineage.settings import LineageSettings
from validators.lineage.summary import JOINT, MODALITIES, LineageSummary
from validators.lineage.tags import REQUIRED_TAGS, likeness

GATE = "lineage"
MAX_NAMED = 20
"""Values of one rule that are named one by one; the rest is counted."""

_CATEGORIES = (*REQUIRED_TAGS, MODALITIES)


def compare_lineage(
    training: LineageSummary, serving: LineageSummary, settings: LineageSettings | None = None
) -> Verdict:
    """Judge what is served, or to be released, against what training saw. Pure."""
    rules = settings or LineageSettings()
    findings = [
        *_untagged(serving, rules),
        *_unseen_facts(training, serving),
        *_unseen_tags(training, serving),
        *_preprocessing(training, serving),
        *find_shift(training.brightness, serving.brightness, rules),
        *find_dark_slices(training, serving, rules),
    ]
    moved, metrics = _moved(training, serving, rules)
    metrics |= {
        "samples": float(serving.samples),
        "modalities": float(len(serving.modalities)),
        "preprocessing_compared": float(len(_both_state(training, serving))),
    }
    if serving.brightness is not None:
        metrics["brightness_mean"] = serving.brightness.mean
    return conclude(GATE, findings + moved, examined=serving.samples, metrics=metrics)


def _untagged(serving: LineageSummary, rules: LineageSettings) -> Iterator[Finding]:
    for name, count in serving.untagged:
        if name in rules.required_tags:
            yield Finding(
                GATE, "missing-tag", name, rules.missing_outcome,
                f"{count} of {serving.samples} samples without it", "on every sample",
                "Tag every sample with its sensor, channels, lighting and source.",
            )  # fmt: skip
    if serving.refused:
        yield Finding(
            GATE, "bad-tag", "samples", Outcome.FAIL,
            f"{serving.refused} of {serving.samples} samples with a value that is no tag", "none",
            "Send tags as short plain text, without control or invisible characters.",
        )  # fmt: skip


def _unseen_facts(training: LineageSummary, serving: LineageSummary) -> Iterator[Finding]:
    known, here = set(training.modalities), set(serving.modalities)
    if not training.category(MODALITIES).rest:
        yield from _named("unseen-modality", Outcome.FAIL, here - known, known)
    yield from _named("absent-modality", Outcome.WARN, known - here, here)
    channels, there = serving.category("channels"), training.category("channels")
    yield from _named("unseen-channels", Outcome.FAIL, _unseen(there, channels), there.known)
    absent = {value for value in there.known if not channels.could_hold(value)}
    yield from _named("absent-channels", Outcome.WARN, absent, channels.known)


def _unseen_tags(training: LineageSummary, serving: LineageSummary) -> Iterator[Finding]:
    for name in ("sensor", "lighting", "source"):
        there = training.category(name)
        unseen = _unseen(there, serving.category(name))
        yield from _named(f"new-{name}", Outcome.WARN, unseen, there.known)
    patterns = training.category(MODALITIES)
    if training.counted:  # without counts only the modalities themselves were written down
        known = set(training.modalities)
        unseen = {
            value
            for value in _unseen(patterns, serving.category(MODALITIES))
            if set(value.split("+")) <= known
        }
        yield from _named("new-modalities", Outcome.WARN, unseen, patterns.known)


def _unseen(training: Counts, serving: Counts) -> set[str]:
    return {value for value in serving.known if not training.could_hold(value)}


def _named(
    code: str, outcome: Outcome, values: Collection[str], known: Collection[str]
) -> Iterator[Finding]:
    limit = _list(known)
    ordered = sorted(values)
    for value in ordered[:MAX_NAMED]:
        like = likeness(value, known)
        said = value if like is None else f"{value} (looks like {like}, and is not the same)"
        yield Finding(GATE, code, value or "none", outcome, said or "none", limit, _REMEDIES[code])
    if len(ordered) > MAX_NAMED:
        more = len(ordered) - MAX_NAMED
        yield Finding(GATE, code, "others", outcome, f"{more} more", limit, _REMEDIES[code])


def _list(values: Collection[str]) -> str:
    ordered = sorted(values)
    more = f" and {len(ordered) - MAX_NAMED} more" if len(ordered) > MAX_NAMED else ""
    return (", ".join(ordered[:MAX_NAMED]) or "none") + more


_REMEDIES = {
    "unseen-modality": "Train on this modality first, or leave it out of the release.",
    "unseen-channels": "Train on these channels first, or convert to the reference's channels.",
    "absent-modality": "Check that the modality was left out on purpose.",
    "absent-channels": "Check that the channels were left out on purpose.",
    "new-sensor": "Check that the new sensor is meant, and watch the drift gate.",
    "new-lighting": "Check that the new lighting is meant, and watch the drift gate.",
    "new-source": "Check that the new source is meant, and watch the drift gate.",
    "new-modalities": "Check that samples with just these modalities are meant.",
}


def _both_state(training: LineageSummary, serving: LineageSummary) -> list[tuple[Counts, Counts]]:
    here = {item.name: item for item in serving.preprocessing}
    return [(item, here[item.name]) for item in training.preprocessing if item.name in here]


def _preprocessing(training: LineageSummary, serving: LineageSummary) -> Iterator[Finding]:
    for there, here in _both_state(training, serving):
        unseen = _unseen(there, here)
        if unseen:
            yield Finding(
                GATE, "preprocessing-differs", here.name, Outcome.FAIL,
                _list([short(value) for value in unseen]),
                _list([short(value) for value in there.known]),
                "Prepare these media as training's were, or train anew. Where the change is meant, "
                "waive this finding for the one release that brings it.",
            )  # fmt: skip


def _moved(
    training: LineageSummary, serving: LineageSummary, rules: LineageSettings
) -> tuple[list[Finding], dict[str, float]]:
    """Findings on the distributions, and the distance of each."""
    if not training.counted or not serving.counted:
        return [_no_counts()], {}
    fewest = min(training.samples, serving.samples)
    if not serving.samples:
        return [], {}  # `conclude` says so
    if fewest < rules.minimum_samples:
        return [_too_few("samples", fewest, rules)], {}
    findings = list(_unlisted(training, serving))
    pairs = _comparable(training, serving)
    small = [name for name, (a, b) in pairs.items() if _fewest(a, b) < rules.minimum_samples]
    findings += [_too_few(name, _fewest(*pairs.pop(name)), rules) for name in small]
    found = _measure(pairs, rules)
    findings += _shifted(found, rules)
    metrics = {f"{name}.distance": item.distance for name, item in found.items()}
    return findings, metrics


def _comparable(
    training: LineageSummary, serving: LineageSummary
) -> dict[str, tuple[Counts, Counts]]:
    names = (*_CATEGORIES, JOINT)
    pairs = {name: (training.category(name), serving.category(name)) for name in names}
    return {
        name: (there, here)
        for name, (there, here) in pairs.items()
        if not there.rest and not here.rest and there.values and here.values
    }


def _measure(
    pairs: dict[str, tuple[Counts, Counts]], rules: LineageSettings
) -> dict[str, Divergence]:
    if not pairs:
        return {}
    permutations = permutations_for(len(pairs), rules.false_alarm_rate)
    return {
        name: diverge(there, here, permutations=permutations, seed=rules.seed)
        for name, (there, here) in pairs.items()
    }


def _shifted(found: dict[str, Divergence], rules: LineageSettings) -> list[Finding]:
    """One finding a category that moved; the joint one only where no category alone did."""
    p_values = [item.p_value for item in found.values()]
    fallen = rejected(p_values, rules.false_alarm_rate)
    moved = {
        name: item
        for (name, item), fell in zip(found.items(), fallen, strict=True)
        if fell and item.effect > rules.shift_effect
    }
    if len(moved) > 1:
        moved.pop(JOINT, None)
    return [_shift(name, item, rules) for name, item in moved.items()]


def _shift(name: str, item: Divergence, rules: LineageSettings) -> Finding:
    remedy = (
        f"Look at which combinations of tags became more and which less (p = {item.p_value:.2g})."
        if name == JOINT
        else f"Look at which values of {name} became more and which less (p = {item.p_value:.2g}); "
        "retrain, or make this data the reference if the change is meant."
    )
    return Finding(
        GATE, "distribution-shifted", name, rules.shift_outcome, round(item.effect, 4),
        rules.shift_effect, remedy,
    )  # fmt: skip


def _unlisted(training: LineageSummary, serving: LineageSummary) -> Iterator[Finding]:
    for name in _CATEGORIES:
        for side, counts in (("training", training), ("serving", serving)):
            held = counts.category(name)
            if held.rest:
                yield Finding(
                    GATE, "too-many-values", f"{name} of {side}", Outcome.INCONCLUSIVE,
                    f"more than {MAX_VALUES}", float(MAX_VALUES),
                    f"Write a kind into the tag {name}, not something that differs from sample to "
                    "sample.",
                )  # fmt: skip


def _too_few(name: str, count: int, rules: LineageSettings) -> Finding:
    return Finding(
        GATE, "too-few-samples", name, Outcome.INCONCLUSIVE, float(count),
        float(rules.minimum_samples),
        "Collect more samples before comparing how often each tag comes.",
    )  # fmt: skip


def _no_counts() -> Finding:
    return Finding(
        GATE, "reference-without-counts", "reference", Outcome.WARN, "values only",
        "values and their counts",
        "Nothing to do: the reference is of an earlier version, so values were compared and how "
        "often each comes was not; the next release is compared with this one.",
    )  # fmt: skip


def _fewest(*counts: Counts) -> int:
    return min(item.samples for item in counts)
