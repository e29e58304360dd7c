"""The columns of a drift window: scalars, categories, and the vectors of one modality.

What a row has not got is marked as absent, never as NaN: absence is itself something that drifts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from validators.contracts.encoder import EncoderContract
from validators.contracts.errors import BadInput
from validators.contracts.origin import VectorOrigin

Bools = npt.NDArray[np.bool_]
Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int32]
Rows = npt.NDArray[np.intp]

OTHER = "(other)"
"""Stands for every category beyond a column's bound."""

ABSENT = -1
"""The code of a row without a category."""

MAX_VOCABULARY = 256
MAX_WORD = 128
MAX_DIMENSION = 16_384


@dataclass(frozen=True, slots=True)
class Scalars:
    """`values` [n], 0 where `present` [n] is False."""

    values: Vector
    present: Bools

    def __post_init__(self) -> None:
        shaped = self.values.ndim == 1 and self.values.shape == self.present.shape
        if not shaped or not np.isfinite(self.values).all() or self.values[~self.present].any():
            raise _unfit("scalars are finite, of rank 1, and 0 where they are absent")

    @staticmethod
    def of(values: npt.ArrayLike) -> Scalars:
        """NaN and infinity are absent: nothing was measured there."""
        given = np.asarray(values, np.float64)
        present = np.isfinite(given)
        return Scalars(np.where(present, given, 0.0), present)

    def __len__(self) -> int:
        return len(self.values)

    def observed(self) -> Vector:
        return self.values[self.present]

    def take(self, rows: Rows) -> Scalars:
        return Scalars(self.values[rows], self.present[rows])


@dataclass(frozen=True, slots=True)
class Categories:
    """`codes` [n] into `vocabulary`, ABSENT where there is none. Words are sorted and distinct."""

    codes: Codes
    vocabulary: tuple[str, ...]

    def __post_init__(self) -> None:
        words = self.vocabulary
        if list(words) != sorted(set(words)) or len(words) > MAX_VOCABULARY + 1:
            raise _unfit(f"a vocabulary is sorted, distinct and of at most {MAX_VOCABULARY} words")
        if any(len(word) > MAX_WORD for word in words):
            raise _unfit(f"a category's name has at most {MAX_WORD} characters")
        codes = self.codes
        if codes.ndim != 1 or (
            len(codes) and not ABSENT <= codes.min() <= codes.max() < len(words)
        ):
            raise _unfit("codes are of rank 1 and within their vocabulary")

    @staticmethod
    def of(words: Sequence[str | None], limit: int = MAX_VOCABULARY) -> Categories:
        """The `limit` most frequent words keep their names, the others become OTHER."""
        cut = [None if word is None else word[:MAX_WORD] for word in words]
        kept = most_frequent(Counter(word for word in cut if word is not None), limit)
        names = [None if word is None else word if word in kept else OTHER for word in cut]
        vocabulary = tuple(sorted({name for name in names if name is not None}))
        index = {name: code for code, name in enumerate(vocabulary)}
        codes = [ABSENT if name is None else index[name] for name in names]
        return Categories(np.asarray(codes, np.int32), vocabulary)

    def __len__(self) -> int:
        return len(self.codes)

    def counts(self) -> dict[str, int]:
        found = np.bincount(self.codes[self.codes != ABSENT], minlength=len(self.vocabulary))
        return dict(zip(self.vocabulary, found.tolist(), strict=True))

    def recoded(self, vocabulary: Sequence[str]) -> Codes:
        """The codes in another vocabulary; what it lacks is OTHER there, or ABSENT without one."""
        index = {word: code for code, word in enumerate(vocabulary)}
        other = index.get(OTHER, ABSENT)
        table = np.array([index.get(word, other) for word in self.vocabulary] + [ABSENT], np.int32)
        return table[self.codes]

    def take(self, rows: Rows) -> Categories:
        """Some rows, with the whole vocabulary."""
        return Categories(self.codes[rows], self.vocabulary)


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of one modality: `vectors` [k, D] of the window's rows `rows` [k], increasing.

    They are one output of an encoder as the encoder made it, before any adapter: what an adapter
    was fitted on looks aligned beyond what new data can. `space` is the space that the contract
    names for that output, or "<encoder>.<output>"; vectors in one space may be compared directly.
    `origin` is None only in windows of the first format.
    """

    vectors: Matrix
    rows: Rows
    space: str
    origin: VectorOrigin | None

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.rows):
            raise _unfit("vectors are a matrix with one row index each")
        if self.vectors.shape[1] > MAX_DIMENSION or not np.isfinite(self.vectors).all():
            raise _unfit(f"vectors are finite and of at most {MAX_DIMENSION} dimensions")
        if self.rows.ndim != 1 or (np.diff(self.rows) <= 0).any() or (self.rows < 0).any():
            raise _unfit("row indices of vectors increase from 0")
        if not 0 < len(self.space) <= 2 * MAX_WORD:
            raise _unfit("a space has a name")

    def __len__(self) -> int:
        return len(self.vectors)

    def take(self, rows: Rows) -> Embedded:
        """The vectors of these window rows (distinct, in any order), renumbered from 0."""
        size = 1 + max(int(rows.max(initial=-1)), int(self.rows.max(initial=-1)))
        places = np.full(size, -1, np.intp)
        places[rows] = np.arange(len(rows))
        found = places[self.rows]
        kept = np.flatnonzero(found >= 0)
        kept = kept[np.argsort(found[kept], kind="stable")]
        return Embedded(self.vectors[kept], found[kept], self.space, self.origin)


def space_of(contract: EncoderContract, output: str) -> str:
    """What `Embedded.space` says of an encoder's output."""
    return contract.output(output).space or f"{contract.name}.{output}"


def most_frequent(counts: Mapping[str, int], limit: int) -> frozenset[str]:
    """The `limit` words with the largest counts, of equal ones those that sort first."""
    return frozenset(sorted(counts, key=lambda word: (-counts[word], word))[:limit])


def joined_vocabulary(parts: Iterable[Categories], limit: int = MAX_VOCABULARY) -> tuple[str, ...]:
    """The words of all parts, the rarest beyond `limit` as OTHER."""
    totals: Counter[str] = Counter()
    for part in parts:
        totals.update(part.counts())
    kept = most_frequent({word: n for word, n in totals.items() if word != OTHER}, limit)
    beyond = {OTHER} if OTHER in totals or len(kept) < len(totals) else set[str]()
    return tuple(sorted(kept | beyond))


def _unfit(what: str) -> BadInput:
    return BadInput(f"no column of a drift window: {what}")


def as_rows(values: Any) -> Rows:
    """Row indices as this machine's index type."""
    return np.asarray(values, np.intp)
