from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.fusion.recall import recall_at_k, wilson_interval
from validators.contracts.errors import BadInput


def test_vectors_that_agree_are_all_found() -> None:
    recall = recall_at_k(np.eye(8), np.eye(8), 1, [{i} for i in range(8)])
    assert (recall.share, recall.chance, recall.over_chance) == (1.0, 0.125, 8.0)


def test_a_model_that_says_the_same_of_everything_finds_nothing() -> None:
    same = np.ones((8, 3))
    assert recall_at_k(same, same, 3, [{i} for i in range(8)]).hits == 0


def test_guessing_scores_what_chance_says() -> None:
    generator = np.random.default_rng(0)
    queries, items = generator.normal(size=(2000, 16)), generator.normal(size=(50, 16))
    matches = [{int(a), int(b)} for a, b in generator.integers(0, 50, (2000, 2))]
    recall = recall_at_k(queries, items, 5, matches)
    assert recall.low <= recall.chance <= recall.high


def test_any_of_several_matches_counts() -> None:
    items = np.eye(4)
    assert recall_at_k(items[:1], items, 1, [{0, 3}]).hits == 1
    assert recall_at_k(items[3:], items, 1, [{0, 3}]).hits == 1


def test_with_k_of_the_whole_catalogue_everything_is_found_by_chance_too() -> None:
    recall = recall_at_k(np.eye(4), -np.eye(4), 4, [{i} for i in range(4)])
    assert (recall.share, recall.chance) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    # Newcombe, "Two-sided confidence intervals for the single proportion" (1998), table I.
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_the_interval_agrees_with_the_published_table(
    hits: int, trials: int, low: float, high: float
) -> None:
    assert wilson_interval(hits, trials) == pytest.approx((low, high), abs=1e-4)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_holds_the_share_and_stays_within_bounds(counts: tuple[int, int]) -> None:
    hits, trials = counts
    low, high = wilson_interval(hits, trials)
    assert 0 <= low <= hits / trials <= high <= 1


@pytest.mark.parametrize(
    ("queries", "items", "k", "matches"),
    [
        (np.zeros((0, 2)), np.eye(2), 1, []),
        (np.eye(2), np.eye(2), 1, [{0}]),
        (np.eye(2), np.eye(2), 0, [{0}, {1}]),
        (np.eye(2), np.eye(2), 3, [{0}, {1}]),
        (np.eye(2), np.eye(2), 1, [{0}, set()]),
        (np.eye(2), np.eye(2), 1, [{0}, {2}]),
        (np.full((1, 2), np.nan), np.eye(2), 1, [{0}]),
    ],
    ids=["no query", "unpaired", "k 0", "k too large", "no match", "match outside", "nan"],
)
def test_what_cannot_be_measured_is_refused(
    queries: np.ndarray, items: np.ndarray, k: int, matches: list[set[int]]
) -> None:
    with pytest.raises(BadInput):
        recall_at_k(queries, items, k, matches)


@pytest.mark.parametrize(("hits", "trials"), [(0, 0), (2, 1), (-1, 5)])
def test_no_proportion_has_no_interval(hits: int, trials: int) -> None:
    with pytest.raises(BadInput):
        wilson_interval(hits, trials)
