"""One content under several ids: the same bytes, and pictures that nearly look the same.

A picture's difference hash (64 bits, `dhash_0` to `dhash_3` of 16 bits each among its measures)
says where luma rises from left to right on a grid of 9 x 8; scaling and recompression leave it
nearly as it is. Hashes that differ in three bits at most agree in one of their four parts, so that
only pictures with an equal part are compared (the pigeonhole principle).

Samples of one recording (the tag `recording`) are alike by nature: a frame that was held, and the
one after it. They are copies of each other only where they lie on both sides of the split.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from validators.contracts.dataset import FINGERPRINTS, RECORDING_TAG, Dataset
from validators.contracts.quality import Consequence, DuplicateRules
from validators.contracts.verdict import Finding
from validators.quality.rules import finding, named, outcome_of
from validators.quality.words import MAX_NAMED

PARTS = FINGERPRINTS[:4]
TONES = ("brightness", *FINGERPRINTS[4:])
TONE_STEP = 6.0
"""Mean luma and tone of two nearly equal pictures differ by this much at most, of 255."""

LEAST_BITS = 6
"""Fewer rises than this, or fewer falls, say nothing: a picture that is nearly flat."""

MAX_STEPS = 64
"""Pictures with one equal part that are compared with each."""

Ids = tuple[str, ...]


def find_copies(dataset: Dataset, ignore: Collection[str]) -> list[tuple[str, Ids]]:
    """(modality, ids) of every content that several samples have, in order of the first id."""
    owners: dict[tuple[str, str], list[str]] = defaultdict(list)
    for sample in dataset.samples:
        for item in sample.media:
            if item.modality not in ignore:
                owners[item.modality, item.digest].append(sample.id)
    found = [(key[0], tuple(sorted(set(ids)))) for key, ids in owners.items()]
    return sorted((item for item in found if len(item[1]) > 1), key=lambda item: (item[1], item[0]))


def find_near(dataset: Dataset, bits: int, ignore: Collection[str]) -> list[tuple[str, Ids]]:
    """(modality, two ids) of every pair of different contents that nearly look the same."""
    rows: dict[str, list[tuple[str, str, list[float]]]] = defaultdict(list)
    for sample in dataset.samples:
        for item in sample.media:
            values = dict(item.measures)
            if item.modality not in ignore and all(name in values for name in FINGERPRINTS):
                wanted = [values.get(name, 0.0) for name in (*PARTS, *TONES)]
                rows[item.modality].append((sample.id, item.digest, wanted))
    return [
        (modality, pair) for modality, found in sorted(rows.items()) for pair in _pairs(found, bits)
    ]


@dataclass(frozen=True, slots=True)
class Copies:
    """Groups of ids by modality: of one content, and pairs of nearly one picture.

    `held` are those of the first that lie within one recording.
    """

    exact: tuple[tuple[str, Ids], ...]
    near: tuple[tuple[str, Ids], ...]
    held: tuple[tuple[str, Ids], ...] = ()


def copies_of(dataset: Dataset, rules: DuplicateRules) -> Copies:
    """All copies that the rules ask for."""
    takes = {sample.id: sample.tag_map().get(RECORDING_TAG) for sample in dataset.samples}
    found, near = find_copies(dataset, rules.ignore), []
    if outcome_of(rules.near) is not None:
        near = find_near(dataset, rules.near_bits, rules.ignore)

    def held(item: tuple[str, Ids]) -> bool:
        return takes[item[1][0]] is not None and len({takes[name] for name in item[1]}) == 1

    return Copies(
        exact=tuple(item for item in found if not held(item)),
        near=tuple(item for item in near if not held(item)),
        held=tuple(item for item in found if held(item)),
    )


def judge_duplicates(
    copies: Copies,
    rules: DuplicateRules,
    held_out: Collection[str] = (),
    *,
    fitted: Collection[str] | None = None,
    declared: bool = True,
) -> Iterator[Finding]:
    """Findings about copies; `held_out` are the ids that no fit may see.

    `fitted` are the modalities that something is fitted on: a copy on both sides of the split does
    no harm where nothing is learned from it. None: all of them. Where the data do not say their
    split (`declared`), the platform drew it, and copies across it do no worse than warn.
    """
    kept = frozenset(held_out)
    across = [
        item
        for item in (*copies.exact, *copies.held)
        if _on_both_sides(item[1], kept) and (fitted is None or item[0] in fitted)
    ]
    consequence = rules.across_splits
    if consequence is Consequence.FAIL and not declared:
        consequence = Consequence.WARN
    told = set(across) if outcome_of(consequence) is not None else set()
    yield from _group(consequence, _ACROSS, across, kept)
    yield from _group(
        rules.exact, _EXACT, [item for item in copies.exact if item not in told], kept
    )
    yield from _group(rules.near, _NEAR, copies.near, kept)


@dataclass(frozen=True, slots=True)
class _Words:
    code: str
    wanted: str
    remedy: str


_ACROSS = _Words(
    "duplicate-across-splits", "one side of the split",
    "Leave it on one side by the tag split: what was trained on cannot be held out.",
)  # fmt: skip
_EXACT = _Words("duplicate-content", "once", "Keep one of these samples.")
_NEAR = _Words("near-duplicate", "once", "Look at these pictures, and keep one where they are one.")


def _group(
    consequence: Consequence,
    words: _Words,
    groups: Sequence[tuple[str, Ids]],
    held_out: frozenset[str],
) -> Iterator[Finding]:
    for modality, ids in groups[:MAX_NAMED]:
        seen = named([f"{name} (held out)" if name in held_out else name for name in ids])
        yield from finding(
            consequence, f"{words.code}-{modality}", "=".join(ids[:2]),
            f"{len(ids)} samples: {seen}", words.wanted, remedy=words.remedy,
        )  # fmt: skip
    if len(groups) > MAX_NAMED:
        yield from finding(
            consequence, words.code, f"groups+{len(groups) - MAX_NAMED}",
            f"{len(groups)} groups of samples, {MAX_NAMED} of them named", words.wanted,
            remedy="Look at quality-results.json, which names them all.",
        )  # fmt: skip


def _on_both_sides(ids: Ids, held_out: frozenset[str]) -> bool:
    return 0 < sum(name in held_out for name in ids) < len(ids)


def _pairs(rows: Sequence[tuple[str, str, list[float]]], bits: int) -> list[Ids]:
    values = np.array([row[2] for row in rows], np.float64)
    hashes = np.zeros(len(rows), np.uint64)
    for part in range(len(PARTS)):
        hashes |= _part(values[:, part]) << np.uint64(16 * part)
    rises = np.bitwise_count(hashes)
    telling = np.flatnonzero((rises >= LEAST_BITS) & (rises <= 64 - LEAST_BITS))
    found: set[tuple[int, int]] = set()
    for part in range(len(PARTS)):
        order = telling[np.argsort(_part(values[telling, part]), kind="stable")]
        found |= _close(order, _part(values[order, part]), hashes, values[:, len(PARTS) :], bits)
    return sorted(
        (rows[one][0], rows[other][0])
        for one, other in found
        if rows[one][1] != rows[other][1] and rows[one][0] != rows[other][0]
    )


def _part(values: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    return np.nan_to_num(values).clip(0, 0xFFFF).astype(np.uint64)


def _close(
    order: npt.NDArray[np.intp],
    part: npt.NDArray[np.uint64],
    hashes: npt.NDArray[np.uint64],
    tones: npt.NDArray[np.float64],
    bits: int,
) -> set[tuple[int, int]]:
    """Pairs of places whose part is equal and whose hash and tones are close."""
    found: set[tuple[int, int]] = set()
    for step in range(1, min(MAX_STEPS, len(order) - 1) + 1):
        equal = np.flatnonzero(part[step:] == part[:-step])
        if not len(equal):
            break
        one, other = order[equal], order[equal + step]
        near = np.bitwise_count(hashes[one] ^ hashes[other]) <= bits
        near &= (np.abs(tones[one] - tones[other]) <= TONE_STEP).all(axis=1)
        pairs = zip(one[near], other[near], strict=True)
        found |= {(int(min(pair)), int(max(pair))) for pair in pairs}
    return found
