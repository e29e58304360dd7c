"""Capture times: what cannot be, and what is out of order within a recording.

Samples of one recording share the tag `recording`; their order is that of their ids, digits taken
as numbers. Which times lie ahead of the clock is found apart (`from_the_future`), so that a verdict
does not depend on the moment at which it was made.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import pairwise

from validators.contracts.dataset import RECORDING_TAG, Dataset, Sample
from validators.contracts.quality import Consequence, TimeRules
from validators.contracts.verdict import Finding
from validators.quality.rules import finding, named

_DIGITS = re.compile(r"(\d+)")


def from_the_future(dataset: Dataset, rules: TimeRules, now_ms: float) -> tuple[str, ...]:
    """The samples whose time is further ahead of the clock than bearable."""
    latest = now_ms + 1000 * rules.future_s
    return tuple(
        sample.id
        for sample in dataset.samples
        if sample.captured_ms is not None and sample.captured_ms > latest
    )


def judge_times(
    dataset: Dataset, rules: TimeRules, future: Collection[str] = ()
) -> Iterator[Finding]:
    """Findings about capture times."""
    samples = dataset.samples
    timed = [
        (sample.id, sample.captured_ms) for sample in samples if sample.captured_ms is not None
    ]
    absurd = [name for name, at in timed if not math.isfinite(at)]
    negative = [name for name, at in timed if at < 0 and math.isfinite(at)]
    yield from _kind(rules.impossible, "time-not-finite", absurd, "a time in milliseconds")
    yield from _kind(rules.impossible, "time-negative", negative, "0 or later")
    yield from _kind(
        rules.impossible, "time-in-future", sorted(future), f"{rules.future_s:g} s ahead at most"
    )
    repeated, disordered = _recordings(dataset)
    yield from _kind(rules.repeated, "time-repeated", repeated, "one time a sample")
    yield from _kind(rules.disorder, "time-not-rising", disordered, "rising times")


def _kind(
    consequence: Consequence, code: str, ids: Collection[str], wanted: str
) -> Iterator[Finding]:
    if ids:
        yield from finding(
            consequence, code, "captured_ms", f"{len(ids)} samples: {named(list(ids))}", wanted,
            remedy="Look at the clock of what recorded them, and write the true time or none.",
        )  # fmt: skip


def _recordings(dataset: Dataset) -> tuple[list[str], list[str]]:
    """Ids whose time repeats the one before, and ids whose time is earlier than it."""
    groups: dict[str, list[Sample]] = defaultdict(list)
    for sample in dataset.samples:
        name = sample.tag_map().get(RECORDING_TAG, "")
        if name and sample.captured_ms is not None and math.isfinite(sample.captured_ms):
            groups[name].append(sample)
    repeated, disordered = list[str](), list[str]()
    for group in groups.values():
        group.sort(key=lambda sample: _natural(sample.id))
        for before, after in pairwise(group):
            if after.captured_ms == before.captured_ms:
                repeated.append(after.id)
            elif (after.captured_ms or 0) < (before.captured_ms or 0):
                disordered.append(after.id)
    return repeated, disordered


def _natural(text: str) -> list[tuple[int, str]]:
    """Ids in the order that people count them: frame-9 before frame-10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(text)]
