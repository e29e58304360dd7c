"""Everything that is compared between two windows, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from validators.drift.blocks import Block, Matrix, measure
from validators.drift.columns import ABSENT, joined_vocabulary
from validators.drift.family import Floats, Tested, judge_family, permutations_for, tail_scores
from validators.drift.labelling import Ints, draw_memberships
from validators.drift.settings import MAX_SLICES, MAX_TAGS, SLICE_SHARE, Kind
from validators.drift.subjects import Case, build_subjects
from validators.drift.window import DriftWindow


@dataclass(frozen=True, slots=True)
class Compared:
    """One subject: what it is, by how much it moved, and how certain that is.

    `slice` is "" or "<tag>=<word>". `rate` is the false-alarm rate that `tested.adjusted` is held
    against.
    """

    subject: str
    slice: str
    kind: Kind
    effect: float
    tested: Tested
    rate: float

    @property
    def name(self) -> str:
        return f"{self.slice}/{self.subject}" if self.slice else self.subject


@dataclass(frozen=True, slots=True)
class Comparison:
    """`skipped` are subjects with too few rows in a window: name to the fewer ones."""

    results: tuple[Compared, ...]
    skipped: tuple[tuple[str, int], ...]
    constant: tuple[str, ...]
    unrelated: tuple[str, ...]
    slices: int


def compare(case: Case) -> Comparison:
    """All features and pairs, then all slices: one family each, with its part of the rate."""
    subjects, minimum = build_subjects(case), case.settings.minimum_samples
    skipped, constant, usable = dict[str, int](), list[str](), list[Block]()
    for block in subjects.blocks:
        fewest = _fewest(block, case.edge)
        if fewest < minimum:
            skipped[block.subject] = fewest
        elif block.constant:
            constant.append(block.subject)
        else:
            usable.append(block)
    tags = dict(_slices(case.reference, case.current, minimum))
    rate = case.settings.false_alarm_rate
    found = _features(case, usable, rate * (1 - SLICE_SHARE if tags else 1))
    for tag, slices in tags.items():
        found += _sliced(case, usable, tag, slices, rate * SLICE_SHARE / len(tags))
    return Comparison(
        tuple(found),
        tuple(skipped.items()),
        tuple(dict.fromkeys(constant)),
        subjects.unrelated,
        sum(len(slices) for slices in tags.values()),
    )


def _features(case: Case, blocks: Sequence[Block], rate: float) -> list[Compared]:
    """All blocks on the same labellings."""
    memberships = draw_memberships(case.units, permutations_for(rate), case.seed("features"))
    scored = _scores(blocks, memberships)
    tested = judge_family([item.scores for item in scored.values()])
    return [
        Compared(name, "", item.kind, case.effects.get(name, item.effect), result, rate)
        for (name, item), result in zip(scored.items(), tested, strict=True)
    ]


def _sliced(
    case: Case, blocks: Sequence[Block], tag: str, slices: Mapping[str, Ints], rate: float
) -> list[Compared]:
    """Each slice of one tag by permutations within it: how large slices are is not in question."""
    count, minimum = permutations_for(rate), case.settings.minimum_samples
    keys, scored = list[tuple[str, str]](), list[_Scored]()
    for word, rows in slices.items():
        edge = int(np.count_nonzero(rows < case.edge))
        inside = [block.take(rows) for block in blocks if block.subject != f"tag.{tag}"]
        usable = [
            block for block in inside if _fewest(block, edge) >= minimum and not block.constant
        ]
        name = f"{tag}={word}"
        found = _scores(usable, draw_memberships(case.units.within(rows), count, case.seed(name)))
        keys += [(name, subject) for subject in found]
        scored += found.values()
    tested = judge_family([item.scores for item in scored])
    return [
        Compared(subject, name, item.kind, item.effect, result, rate)
        for (name, subject), item, result in zip(keys, scored, tested, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Scored:
    """The largest score of a subject's statistics by labelling, and its observed effect."""

    kind: Kind
    scores: Floats
    effect: float


def _scores(blocks: Sequence[Block], memberships: Matrix) -> dict[str, _Scored]:
    found: dict[str, _Scored] = {}
    for block in blocks:
        measured = measure(block, memberships)
        best = np.stack([tail_scores(row) for row in measured.statistics]).max(axis=0)
        effect, before = measured.effect, found.get(block.subject)
        if before is not None:
            best, effect = np.maximum(best, before.scores), max(effect, before.effect)
        found[block.subject] = _Scored(block.kind, best, effect)
    return found


def _fewest(block: Block, edge: int) -> int:
    """Rows with a value in the window that has fewer."""
    return min(int(block.present[:edge].sum()), int(block.present[edge:].sum()))


def _slices(
    reference: DriftWindow, current: DriftWindow, minimum: int
) -> Iterator[tuple[str, dict[str, Ints]]]:
    """By tag, the pooled rows of its largest slices with enough rows in both windows."""
    for tag in sorted({*reference.tags} & {*current.tags})[:MAX_TAGS]:
        columns = reference.tags[tag], current.tags[tag]
        words = joined_vocabulary(columns)
        codes = [column.recoded(words) for column in columns]
        counts = np.stack([np.bincount(c[c != ABSENT], minlength=len(words)) for c in codes])
        enough = np.flatnonzero(counts.min(axis=0) >= minimum)
        pooled = np.concatenate(codes)
        sizes = counts.sum(axis=0)
        if not len(enough) or sizes.max() == len(pooled):
            continue  # a slice of all rows is no slice
        largest = sorted(enough.tolist(), key=lambda code: (-int(sizes[code]), words[code]))
        yield tag, {words[code]: np.flatnonzero(pooled == code) for code in largest[:MAX_SLICES]}
