"""More rows than fit in memory: what the gate needs of them, bounded, and joined in any order.

A sketch holds a sample of rows as a window (the rows whose number hashes lowest, so that it is the
same sample however the rows were parted) and exact counts over all rows: how many values lie below
each of the plan's edges, how many rows are of each category, how many lack each column, and the sum
of each embedding's kernel features. The tests permute the sample; the effects of scalars,
categories and absence are measured on everything. Counts at the edges are exact, so a distribution
function is known everywhere to within the reference's share between two edges (at most 1 / EDGES).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from validators.contracts.errors import BadInput
from validators.drift.columns import ABSENT, OTHER, Matrix, Scalars, most_frequent
from validators.drift.detectors import median_distance
from validators.drift.joining import Siblings, stack
from validators.drift.labelling import Ints
from validators.drift.window import DriftWindow, ordered, take

Floats = npt.NDArray[np.float64]
Hashes = npt.NDArray[np.uint64]

EDGES = 256
FEATURES = 128
SAMPLE_ROWS = 2000
MAX_WORDS = 1024
"""Words of a column that are counted by name; beyond it the rarer half becomes OTHER. A word that
went had at most 2 / MAX_WORDS of all rows then, so no frequent one is ever lost."""

_LEVELS = np.linspace(0, 1, EDGES + 1)


@dataclass(frozen=True, slots=True)
class SketchPlan:
    """What is counted: made once from the reference and used for both sides.

    `edges` by scalar are values of the reference; `weights` [D, FEATURES / 2] by modality project
    its vectors into a kernel's random features.
    """

    edges: Mapping[str, Floats]
    weights: Mapping[str, Matrix] = field(default_factory=dict)
    sample_rows: int = SAMPLE_ROWS
    seed: int = 20

    @staticmethod
    def of(reference: DriftWindow, sample_rows: int = SAMPLE_ROWS, seed: int = 20) -> SketchPlan:
        """Edges at the reference's quantiles; kernels as wide as its vectors are apart."""
        edges = {
            name: np.unique(np.quantile(column.observed(), _LEVELS, method="inverted_cdf"))
            for name, column in sorted(reference.descriptors.items())
            if column.present.any()
        }
        weights = {
            name: _weights(embedded.vectors, np.random.default_rng(seed))
            for name, embedded in sorted(reference.embeddings.items())
            if len(embedded)
        }
        return SketchPlan(edges, weights, sample_rows, seed)


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one column over all rows: rows that lack it, rows at or below each edge, rows by word."""

    absent: int
    below: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    words: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sketch:
    """Of `rows` rows. `sample` are those whose `hashes` are lowest, ordered by their `numbers`.

    `means` are the sum of the kernel features and the number of vectors, by modality.
    """

    rows: int
    sample: DriftWindow
    numbers: Ints
    hashes: Hashes
    counts: Mapping[str, Counts]
    means: Mapping[str, tuple[Floats, int]] = field(default_factory=dict)


def sketch(window: DriftWindow, plan: SketchPlan, first_row: int = 0) -> Sketch:
    """The sketch of some rows, which are number `first_row` and following of the whole."""
    numbers = np.arange(first_row, first_row + window.rows, dtype=np.intp)
    hashes = _hashes(numbers, plan.seed)
    chosen = np.sort(np.argsort(hashes, kind="stable")[: plan.sample_rows])
    counts = {
        f"descriptor/{name}": _count(column, plan.edges.get(name))
        for name, column in window.descriptors.items()
    }
    for kind, columns in (("category", window.categories), ("tag", window.tags)):
        for name, column in columns.items():
            words = {word: count for word, count in column.counts().items() if count}
            absent = int(np.count_nonzero(column.codes == ABSENT))
            counts[f"{kind}/{name}"] = Counts(absent, words=words)
    means = {
        name: (_features(embedded.vectors, plan.weights[name]).sum(axis=0), len(embedded))
        for name, embedded in window.embeddings.items()
        if name in plan.weights and len(plan.weights[name]) == embedded.vectors.shape[1]
    }
    sample = replace(take(window, chosen), seen=window.rows)
    return Sketch(window.rows, sample, numbers[chosen], hashes[chosen], counts, means)


def merge(one: Sketch, other: Sketch, plan: SketchPlan, siblings: Siblings = ()) -> Sketch:
    """The sketch of the rows of both, whichever comes first.

    Raises:
        Refused: vectors of two encoder versions would mix.
    """
    numbers = np.concatenate([one.numbers, other.numbers])
    hashes = np.concatenate([one.hashes, other.hashes])
    kept = np.argsort(hashes, kind="stable")[: plan.sample_rows]
    chosen = kept[np.argsort(numbers[kept], kind="stable")]
    rows = one.rows + other.rows
    counts = {
        name: _added(_of(one, name), _of(other, name))
        for name in sorted({*one.counts} | {*other.counts})
    }
    means = {
        name: _summed(one.means.get(name), other.means.get(name))
        for name in sorted({*one.means} | {*other.means})
    }
    both = stack([one.sample, other.sample], siblings, rows)
    return Sketch(rows, ordered(both, chosen), numbers[chosen], hashes[chosen], counts, means)


def sketch_stream(
    windows: Iterable[DriftWindow], plan: SketchPlan, siblings: Siblings = ()
) -> Sketch:
    """The sketch of windows that come one after the other; only one of them is held at a time."""
    whole: Sketch | None = None
    for window in windows:
        part = sketch(window, plan, whole.rows if whole else 0)
        whole = part if whole is None else merge(whole, part, plan, siblings)
    if whole is None:
        raise BadInput("no drift window to sketch", remedy="Give one at least.")
    return whole


def _of(found: Sketch, name: str) -> Counts:
    """A column that a part has not got is absent in all of its rows."""
    return found.counts.get(name) or Counts(found.rows)


def _added(one: Counts, other: Counts) -> Counts:
    below = (
        one.below + other.below
        if len(one.below) == len(other.below)
        else max(one.below, other.below, key=len)
    )
    words = Counter(one.words)
    words.update(other.words)
    return Counts(one.absent + other.absent, below, _bounded(words))


def _bounded(words: Counter[str]) -> dict[str, int]:
    """The most frequent words by name, the others together as OTHER."""
    if len(words) <= MAX_WORDS:
        return dict(words)
    kept = most_frequent({word: n for word, n in words.items() if word != OTHER}, MAX_WORDS // 2)
    found = {word: words[word] for word in kept}
    found[OTHER] = sum(words.values()) - sum(found.values())
    return found


def _summed(one: tuple[Floats, int] | None, other: tuple[Floats, int] | None) -> tuple[Floats, int]:
    if one is None or other is None:
        found = one or other
        assert found is not None  # noqa: S101 it is a name of one of them
        return found
    return one[0] + other[0], one[1] + other[1]


def _count(column: Scalars, edges: Floats | None) -> Counts:
    absent = int(np.count_nonzero(~column.present))
    if edges is None:
        return Counts(absent)
    places = np.searchsorted(edges, column.observed())  # the first edge at or above a value
    found = np.bincount(places, minlength=len(edges) + 1)[: len(edges)]
    return Counts(absent, np.cumsum(found).astype(np.int64))


def _hashes(numbers: Ints, seed: int) -> Hashes:
    """A fixed random number for each row number (SplitMix64, Steele et al., 2014)."""
    state = (numbers + 1 + seed).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Hashes = state ^ (state >> np.uint64(31))
    return found


def _weights(vectors: Matrix, generator: np.random.Generator) -> Matrix:
    width = median_distance(vectors, generator)
    drawn = generator.normal(scale=1 / width, size=(vectors.shape[1], FEATURES // 2))
    return drawn.astype(np.float32)


def _features(vectors: Matrix, weights: Matrix) -> Floats:
    projected = vectors @ weights
    return np.concatenate([np.cos(projected), np.sin(projected)], axis=1, dtype=np.float64)
