"""What the drift benchmarks compare with: Evidently's defaults, a classifier, an exact MMD."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt
import pandas as pd

os.environ.setdefault("DO_NOT_TRACK", "1")

from evidently import DataDefinition, Dataset, Report
from evidently.legacy.metrics.data_drift.embedding_drift_methods import ModelDriftMethod
from evidently.metrics.embeddings import EmbeddingsDrift
from evidently.presets import DataDriftPreset
from scipy import stats
from sklearn.linear_model import LogisticRegression

from validators.drift.columns import Categories
from validators.drift.window import DriftWindow

Floats = npt.NDArray[np.float64]
Vectors = npt.NDArray[np.float32]

SMALL = 1000
"""Evidently's own border: fewer reference rows are tested, more are measured by a distance."""


def evidently_embedding_drifted(reference: DriftWindow, current: DriftWindow) -> bool:
    """Evidently's default decision on an embedding: its model method, without its drawing."""
    before, now = (_vectors(window) for window in (reference, current))
    method = ModelDriftMethod(bootstrap=len(before) < SMALL)
    return bool(method(now, before)[1])


def evidently_columns_drifted(reference: DriftWindow, current: DriftWindow) -> int:
    """How many columns Evidently's defaults call drifted: below SMALL rows, KS and chi-squared at
    p < 0.05 (a Z test for two categories), on the values that are there."""
    count = 0
    for name, column in reference.descriptors.items():
        other = current.descriptors[name].observed()
        count += stats.ks_2samp(column.observed(), other).pvalue < 0.05
    for name, words in reference.categories.items():
        count += _chi_squared(words, current.categories[name]) < 0.05
    return int(count)


def _chi_squared(reference: Categories, current: Categories) -> float:
    """Evidently's: the current counts against those expected from the reference's shares."""
    words = sorted({*reference.vocabulary, *current.vocabulary})
    before = np.array([reference.counts().get(word, 0) for word in words], float)
    now = np.array([current.counts().get(word, 0) for word in words], float)
    expected = before * now.sum() / before.sum()
    return float(stats.chisquare(now, np.maximum(expected, 1e-9), sum_check=False).pvalue)


def evidently_table(reference: pd.DataFrame, current: pd.DataFrame) -> object:
    """A data drift report of all columns, computed and not yet drawn."""
    definition = DataDefinition(numerical_columns=list(reference.columns))
    return _run([DataDriftPreset()], reference, current, definition)


def evidently_embedding(reference: pd.DataFrame, current: pd.DataFrame) -> object:
    definition = DataDefinition(embeddings={"e": list(reference.columns)})
    return _run([EmbeddingsDrift(embeddings_name="e")], reference, current, definition)


def evidently_embedding_method(reference: pd.DataFrame, current: pd.DataFrame) -> object:
    """The decision of that report alone, without the picture that comes with it."""
    return ModelDriftMethod(bootstrap=len(reference) < SMALL)(current.copy(), reference.copy())


def _run(
    metrics: list[object], reference: pd.DataFrame, current: pd.DataFrame, of: DataDefinition
) -> object:
    before, now = (Dataset.from_pandas(f, data_definition=of) for f in (reference, current))
    return Report(metrics).run(now, before).dict()


def _vectors(window: DriftWindow) -> pd.DataFrame:
    vectors = window.embeddings["image"].vectors
    return pd.DataFrame(vectors, columns=[f"e{place}" for place in range(vectors.shape[1])])


def classifier_p_value(
    reference: Floats, current: Floats, seed: int, *, permutations: int = 399, folds: int = 5
) -> float:
    """A classifier two-sample test (Lopez-Paz and Oquab, 2017): logistic, cross-fitted.

    Labels are permuted within each fold against scores of a fit that saw neither.
    """
    generator = np.random.default_rng(seed)
    pooled = np.concatenate([reference, current])
    pooled = (pooled - pooled.mean(axis=0)) / (pooled.std(axis=0) + 1e-9)
    label = np.arange(len(pooled)) >= len(reference)
    fold = generator.permutation(len(pooled)) % folds
    scores = np.zeros(len(pooled))
    for part in range(folds):
        inside = fold == part
        model = LogisticRegression(C=0.1, max_iter=200).fit(pooled[~inside], label[~inside])
        scores[inside] = model.decision_function(pooled[inside])

    def gap(labels: npt.NDArray[np.bool_]) -> float:
        return float(scores[labels].mean() - scores[~labels].mean())

    observed, reached = gap(label), 1
    for _ in range(permutations):
        drawn = label.copy()
        for part in range(folds):
            inside = np.flatnonzero(fold == part)
            drawn[inside] = generator.permutation(drawn[inside])
        reached += gap(drawn) >= observed
    return reached / (1 + permutations)


def exact_mmd(reference: Vectors, current: Vectors, seed: int, permutations: int = 100) -> float:
    """The p-value of an unbiased MMD with the whole kernel matrix, permuted, as alibi-detect's.

    Gaussian, its bandwidth the median distance; 100 permutations are alibi-detect's default.
    """
    pooled = np.concatenate([reference, current]).astype(np.float32)
    squares = np.sum(pooled**2, axis=1)
    kernel = pooled @ pooled.T  # the one large array; all that follows is in place
    kernel *= -2
    kernel += squares[:, None]
    kernel += squares[None, :]
    corner = kernel[: min(len(kernel), 2000), : min(len(kernel), 2000)]
    kernel /= -max(float(np.median(corner)), 1e-12)
    np.exp(kernel, out=kernel)
    np.fill_diagonal(kernel, 0)
    generator, first, size = np.random.default_rng(seed), len(reference), len(pooled)
    order, total, found = np.arange(size), float(kernel.sum(dtype=np.float64)), list[float]()
    for _ in range(permutations + 1):
        inside = np.zeros(size, np.float32)
        inside[order[:first]] = 1
        sums = kernel @ inside
        own = float(sums @ inside)
        cross = float(sums.sum(dtype=np.float64)) - own
        other = total - own - 2 * cross
        rest = size - first
        found.append(
            own / (first * (first - 1)) + other / (rest * (rest - 1)) - 2 * cross / (first * rest)
        )
        order = generator.permutation(size)
    return float(np.mean(np.array(found) >= found[0]))
