"""Recall at k of a retrieval, beside what guessing would reach, with its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from validators.compatibility.estimates import wilson_bounds
from validators.contracts.errors import BadInput


@dataclass(frozen=True, slots=True)
class Recall:
    """Share of queries with a match among the k nearest items. `low`, `high`: 95 % interval."""

    k: int
    queries: int
    hits: int
    catalogue: int
    chance: float
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.hits / self.queries

    @property
    def over_chance(self) -> float:
        return self.share / self.chance


def recall_at_k(
    queries: npt.NDArray[Any],
    catalogue: npt.NDArray[Any],
    k: int,
    matches: Sequence[Collection[int]],
) -> Recall:
    """How many queries [Q, D] find one of their `matches` among the k nearest of [N, D].

    Nearness is the dot product: give unit vectors for cosine. Ties count against the match, so a
    model that says the same of everything scores nothing.

    Raises:
        BadInput: no query, k not within 1..N, a query without a match, a match outside, not finite.
    """
    _require(queries, catalogue, k, matches)
    scores = queries @ catalogue.T
    hits = 0
    for row, wanted in zip(scores, matches, strict=True):
        index = list(wanted)
        best = row[index].max()
        others = np.delete(row, index)
        hits += int((others >= best).sum() < k)
    chance = float(np.mean([_chance(len(catalogue), len(set(m)), k) for m in matches]))
    low, high = wilson_interval(hits, len(queries))
    return Recall(k, len(queries), hits, len(catalogue), chance, low, high)


def wilson_interval(hits: int, trials: int) -> tuple[float, float]:
    """The 95 % score interval of a counted proportion; see `wilson_bounds`.

    Raises:
        BadInput: no trial, or hits outside 0..trials.
    """
    if trials < 1 or not 0 <= hits <= trials:
        raise BadInput(f"{hits} of {trials} is not a proportion", where="recall")
    return wilson_bounds(hits / trials, trials)


def _chance(items: int, matches: int, k: int) -> float:
    """Probability that k items drawn without replacement hold one of `matches` of `items`."""
    return 1.0 - math.comb(items - matches, k) / math.comb(items, k)


def _require(
    queries: npt.NDArray[Any],
    catalogue: npt.NDArray[Any],
    k: int,
    matches: Sequence[Collection[int]],
) -> None:
    if queries.ndim != 2 or not len(queries) or len(queries) != len(matches):
        raise BadInput(
            f"{len(queries)} queries with {len(matches)} lists of matches", where="recall"
        )
    if catalogue.ndim != 2 or not 1 <= k <= len(catalogue):
        raise BadInput(
            f"recall at {k} of a catalogue of {len(catalogue)}",
            where="recall",
            remedy="Choose k from 1 to the size of the catalogue.",
        )
    if not (np.isfinite(queries).all() and np.isfinite(catalogue).all()):
        raise BadInput("vectors are not finite", where="recall")
    for wanted in matches:
        if not wanted or not all(0 <= index < len(catalogue) for index in wanted):
            raise BadInput("a query has no match in the catalogue", where="recall")
