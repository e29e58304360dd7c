"""Pictures that became darker or brighter: all of them, or those of one slice among many."""

from __future__ import annotations

import math
from collections.abc import Iterator

from scipy import stats

from validators.contracts.verdict import Finding, Outcome
from validators.lineage.counts import Brightness
from validators.lineage.multiplicity import rejected
from validators.lineage.settings import LineageSettings
from validators.lineage.summary import LineageSummary
from validators.lineage.tags import REQUIRED_TAGS

MAX_SLICES = 20
_GATE = "lineage"

Pair = tuple[str, Brightness, Brightness]


def find_shift(
    training: Brightness | None, serving: Brightness | None, rules: LineageSettings
) -> Iterator[Finding]:
    """Whether the mean of all pictures moved by more than a share of it and than noise explains."""
    if training is None or serving is None:
        return
    noise = math.sqrt(_squared_error(serving) + _squared_error(training))
    shift = abs(serving.mean - training.mean)
    if _matters(training, serving, rules) and shift > rules.brightness_z * noise:
        yield _finding("image", training, serving)


def find_dark_slices(
    training: LineageSummary, serving: LineageSummary, rules: LineageSettings
) -> list[Finding]:
    """The same for the pictures of each value of each tag, with control over all of them.

    A tag with one value says nothing that the whole does not. By Welch's test (1947), whose
    p-values go through Benjamini and Yekutieli; the largest shifts are named.
    """
    pairs = list(_slices(training, serving, rules))
    p_values = [_welch(there, here) for _, there, here in pairs]
    fallen = rejected(p_values, rules.false_alarm_rate)
    moved = [
        pair
        for pair, fell in zip(pairs, fallen, strict=True)
        if fell and _matters(*pair[1:], rules)
    ]
    moved.sort(key=lambda pair: (-abs(pair[2].mean - pair[1].mean), pair[0]))
    return [_finding(*pair) for pair in moved[:MAX_SLICES]]


def _slices(
    training: LineageSummary, serving: LineageSummary, rules: LineageSettings
) -> Iterator[Pair]:
    for name in REQUIRED_TAGS:
        there, here = training.category(name), serving.category(name)
        if len(there.known | here.known) < 2:
            continue
        before = {item.value: item.brightness for item in there.values}
        for item in here.values:
            known = before.get(item.value)
            if known is None or item.brightness is None:
                continue
            if min(known.pictures, item.brightness.pictures) >= rules.slice_pictures:
                yield f"{name}={item.value}", known, item.brightness


def _matters(training: Brightness, serving: Brightness, rules: LineageSettings) -> bool:
    relative = abs(serving.mean - training.mean) / max(training.mean, 1.0)
    return relative > rules.brightness_shift


def _welch(training: Brightness, serving: Brightness) -> float:
    if training.deviation == serving.deviation == 0:
        return 1.0 if training.mean == serving.mean else 0.0
    found = stats.ttest_ind_from_stats(
        training.mean, training.deviation, training.pictures,
        serving.mean, serving.deviation, serving.pictures, equal_var=False,
    )  # fmt: skip
    return float(found.pvalue)


def _squared_error(value: Brightness) -> float:
    return value.deviation**2 / value.pictures


def _finding(subject: str, training: Brightness, serving: Brightness) -> Finding:
    return Finding(
        _GATE, "brightness-shift", subject, Outcome.WARN,
        round(serving.mean, 1), round(training.mean, 1),
        "Compare exposure and lighting of the two collections before releasing.",
    )  # fmt: skip
