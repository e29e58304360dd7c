"""What two windows have in common, as blocks: columns, vectors, and pairs of modalities."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from validators.drift.blocks import Block, absence_block, category_block, scalar_block
from validators.drift.detectors import DEFAULT_DETECTORS, Detector
from validators.drift.joining import Siblings, comparable
from validators.drift.labelling import Units
from validators.drift.pairs import PairScores, common_rows, pair_blocks, score_pairs
from validators.drift.settings import DriftSettings, Kind
from validators.drift.window import DriftWindow


@dataclass(frozen=True, slots=True)
class Case:
    """Two windows and how they are to be compared. Pooled rows are the reference's, then these.

    `effects` by subject were measured on more rows than are here, and count instead of these.
    """

    reference: DriftWindow
    current: DriftWindow
    units: Units
    settings: DriftSettings = field(default_factory=DriftSettings)
    detectors: Sequence[Detector] = DEFAULT_DETECTORS
    siblings: Siblings = ()
    effects: Mapping[str, float] = field(default_factory=dict)

    @property
    def edge(self) -> int:
        """The pooled row that the current window begins at."""
        return self.reference.rows

    def seed(self, subject: str) -> int:
        return self.settings.seed + zlib.crc32(subject.encode())

    def modalities(self) -> list[str]:
        """Those whose vectors may be compared."""
        mine, theirs = self.reference.embeddings, self.current.embeddings
        return [
            name
            for name in sorted({*mine} & {*theirs})
            if comparable(mine[name], theirs[name], self.siblings)
        ]


@dataclass(frozen=True, slots=True)
class Subjects:
    """`unrelated` are pairs of modalities that tell nothing of each other: nothing can be lost."""

    blocks: tuple[Block, ...]
    unrelated: tuple[str, ...]


def build_subjects(case: Case) -> Subjects:
    """Columns that both windows have, as blocks."""
    blocks = [*_scalars(case), *_categories(case)]
    names = case.modalities()
    for name in names:
        blocks += _vectors(case, name)
    unrelated = list[str]()
    for one, other in combinations(names, 2):
        scores = pair_scores(case, one, other)
        if scores is None:
            continue
        if scores.related:
            blocks += pair_blocks(pair_name(one, other), scores, case.units.rows)
        else:
            unrelated.append(pair_name(one, other))
    return Subjects(tuple(blocks), tuple(unrelated))


def pair_name(one: str, other: str) -> str:
    return f"pairs.{one}+{other}"


def pair_scores(case: Case, one: str, other: str) -> PairScores | None:
    """Scores of the pairs of two modalities, or None where a window has too few of them."""
    windows = case.reference, case.current
    parts = [(window.embeddings[one], window.embeddings[other]) for window in windows]
    places = [common_rows(*part) for part in parts]
    if min(len(rows) for rows, _, _ in places) < case.settings.minimum_samples:
        return None
    rows = np.concatenate([places[0][0], places[1][0] + case.edge])
    left = np.concatenate([part[0].vectors[at[1]] for part, at in zip(parts, places, strict=True)])
    right = np.concatenate([part[1].vectors[at[2]] for part, at in zip(parts, places, strict=True)])
    shared = parts[0][0].space == parts[0][1].space and left.shape[1] == right.shape[1]
    units = np.unique(case.units.unit[rows], return_inverse=True)[1]
    return score_pairs(left, right, rows, units, shared=shared, seed=case.seed(one + other),
                       edge=case.edge)  # fmt: skip


def _scalars(case: Case) -> Iterator[Block]:
    """Values, and where rows lack some, whether they are there; columns that always lack them
    together are one question."""
    one, other = case.reference.descriptors, case.current.descriptors
    masks: dict[bytes, list[str]] = {}
    for name in sorted({*one} & {*other}):
        block = scalar_block(name, one[name], other[name])
        if not block.present.all():
            masks.setdefault(block.present.tobytes(), []).append(name)
        yield block
    for mask, names in masks.items():
        others = f" (+{len(names) - 1})" if len(names) > 1 else ""
        yield absence_block(f"absence.{names[0]}{others}", np.frombuffer(mask, np.bool_))


def _categories(case: Case) -> Iterator[Block]:
    """Categories and lineage tags, and whether rows have one."""
    for prefix, one, other in (
        ("", case.reference.categories, case.current.categories),
        ("tag.", case.reference.tags, case.current.tags),
    ):
        for name in sorted({*one} & {*other}):
            block = category_block(prefix + name, one[name], other[name])
            yield block
            if not block.present.all():
                yield absence_block(f"absence.{prefix}{name}", block.present)


def _vectors(case: Case, modality: str) -> Iterator[Block]:
    reference, current = case.reference.embeddings[modality], case.current.embeddings[modality]
    subject = f"embedding.{modality}"
    there = np.concatenate([reference.rows, current.rows + case.edge])
    present = np.zeros(case.units.rows, np.bool_)
    present[there] = True
    pooled = np.concatenate([reference.vectors, current.vectors])
    for detector in case.detectors if len(pooled) else ():
        found = detector.features(pooled, case.seed(subject))
        whole = np.zeros((len(present), found.shape[1]), np.float32)
        whole[there] = found
        yield Block(subject, Kind.VECTORS, "means", whole, present)
    if not present.all():
        yield absence_block(f"absence.{subject}", present)
