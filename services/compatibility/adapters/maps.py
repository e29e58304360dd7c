"""Closed-form maps between two spaces of unit vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from services.compatibility.adapters.pairs import AdapterPairs, Questions, questions_of
from services.compatibility.geometry import Matrix, fit_ridge_map, similarities
from validators.compatibility.adapters import AdapterKind

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class FittedMap:
    """A map as named weights: rows @ first [@ second] [+ bias] [+ a learned correction].

    `tensors` hold what there is: `first`, `second`, `bias`, and for the correction
    relu(rows @ hidden + hidden_bias) @ out its `hidden`, `hidden_bias` and `out`. Rows come in at
    length one; whoever compares what comes out does so by cosine.
    """

    kind: AdapterKind
    tensors: Mapping[str, Array]
    detail: str = ""

    @property
    def parameters(self) -> int:
        return sum(int(item.size) for item in self.tensors.values())

    def __call__(self, rows: Matrix) -> Matrix:
        mapped = rows @ self.tensors["first"]
        if "second" in self.tensors:
            mapped = mapped @ self.tensors["second"]
        if "bias" in self.tensors:
            mapped = mapped + self.tensors["bias"]
        if "hidden" in self.tensors:
            inner = np.maximum(rows @ self.tensors["hidden"] + self.tensors["hidden_bias"], 0)
            mapped = mapped + inner @ self.tensors["out"]
        return np.asarray(mapped)


def fit_procrustes(pairs: AdapterPairs) -> FittedMap:
    """The turn (or reflection) that brings new nearest to old (Schönemann, Psychometrika 31, 1966).

    Between two dimensions it is the turn after the smaller one was padded with zeros: a matrix with
    orthonormal columns or rows, which keeps every length it can.
    """
    left, _, right = np.linalg.svd(pairs.new.T @ pairs.old, full_matrices=False)
    return FittedMap(AdapterKind.PROCRUSTES, {"first": left @ right})


def fit_affine(fitting: AdapterPairs, validation: AdapterPairs) -> FittedMap:
    """Reduced-rank ridge regression (Mukherjee and Zhu, Stat. Anal. Data Min. 4, 2011).

    The ridge map of all fitting pairs is cut to the leading directions of what it predicts; the
    rank that finds most validation items is taken, the smaller of equals.
    """
    whole = fit_ridge_map(fitting.new, fitting.old)
    _, _, right = np.linalg.svd(fitting.new @ whole.weight, full_matrices=False)
    questions = questions_of(validation, _together(fitting, validation))
    scored = []
    for rank in _ranks(min(*whole.weight.shape, len(fitting.old))):
        kept = right[:rank]
        tensors = {"first": whole.weight @ kept.T, "second": kept, "bias": whole.bias}
        found = FittedMap(AdapterKind.AFFINE, tensors, f"rank {rank}")
        scored.append((score(found, questions), -rank, found))
    return _multiplied(max(scored, key=lambda item: item[:2])[2])


def score(found: FittedMap, questions: Questions) -> float:
    """Recall at 1, and by the mean similarity to one's own where recall ties."""
    similar = similarities(found(questions.asking), questions.index)
    own = similar[np.arange(len(similar)), questions.own]
    first = (similar >= own[:, None]).sum(axis=1) == 1
    return float(np.round(first.mean(), 6) + 1e-3 * own.mean()) if len(own) else 0.0


def _multiplied(found: FittedMap) -> FittedMap:
    """One matrix where that takes fewer numbers than two."""
    first, second = found.tensors["first"], found.tensors["second"]
    if first.size + second.size < first.shape[0] * second.shape[1]:
        return found
    tensors = {"first": first @ second, "bias": found.tensors["bias"]}
    return FittedMap(found.kind, tensors, found.detail)


def _ranks(largest: int) -> list[int]:
    powers = [2**step for step in range(3, 20) if 2**step < largest]
    return [*powers, max(largest, 1)]


def _together(*parts: AdapterPairs) -> AdapterPairs:
    return AdapterPairs(
        np.concatenate([part.old for part in parts]),
        np.concatenate([part.new for part in parts]),
        np.concatenate([part.item for part in parts]),
        np.concatenate([part.view for part in parts]),
    )
