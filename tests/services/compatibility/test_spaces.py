"""What must not change the comparison of two spaces, and what must."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from services.compatibility.spaces import Cloud, Embedding, measure_geometry, repeated_inputs
from validators.compatibility.estimates import Estimate
from validators.compatibility.measured import CompatibilityWord, Geometry
from validators.compatibility.words import CompatibilitySettings, word_of

Matrix = npt.NDArray[np.float64]
SETTINGS = CompatibilitySettings()
seeds = st.integers(0, 2**32 - 1)
FEW = settings(max_examples=15, deadline=None)


def one_view(rows: Matrix) -> Cloud:
    return Cloud(rows, rows)


def compare(old: Matrix, new: Matrix) -> Geometry:
    return measure_geometry(Embedding("features", False), one_view(old), one_view(new))


def cloud(seed: int, items: int = 40, dim: int = 6) -> Matrix:
    return np.random.default_rng(seed).standard_normal((items, dim))


def turn(seed: int, dim: int = 6) -> Matrix:
    return np.asarray(np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, dim)))[0])


def noisy(rows: Matrix, seed: int, size: float = 0.4) -> Matrix:
    return rows + size * np.random.default_rng(seed).standard_normal(rows.shape)


def close(first: Geometry, second: Geometry) -> bool:
    """Equal but for what the summing of floats in another order can change."""
    pairs = [
        (first.cosine, second.cosine),
        (first.rank_correlation, second.rank_correlation),
        (first.overlap, second.overlap),
        (first.kept, second.kept),
        (first.adapted, second.adapted),
    ]
    return all(
        a is not None and b is not None and a.value == pytest.approx(b.value, abs=2e-2)
        for a, b in pairs
    )


@FEW
@given(seeds)
def test_turning_both_spaces_alike_changes_nothing(seed: int) -> None:
    old = cloud(seed)
    new, around = noisy(old, seed + 1), turn(seed)
    assert close(compare(old, new), compare(old @ around, new @ around))


@FEW
@given(seeds)
def test_turning_one_space_calls_for_an_adapter(seed: int) -> None:
    old = cloud(seed)
    geometry = compare(old, old @ turn(seed + 1))
    assume(geometry.cosine is not None and geometry.cosine.low < SETTINGS.same_cosine)
    assert word_of(geometry, SETTINGS) is CompatibilityWord.ADAPTER
    assert geometry.rank_correlation is not None
    assert geometry.rank_correlation.value == pytest.approx(1, abs=1e-3)


@FEW
@given(seeds)
def test_vectors_of_other_items_call_for_a_new_index(seed: int) -> None:
    old = cloud(seed)
    moved = np.roll(np.random.default_rng(seed).permutation(len(old)), 1)
    assume((moved == np.arange(len(old))).mean() < 0.2)
    geometry = compare(old, old[moved])
    assert word_of(geometry, SETTINGS) is CompatibilityWord.REINDEX
    assert geometry.rank_correlation is not None and geometry.rank_correlation.value < 0.3


@FEW
@given(seeds, st.floats(1e-6, 1e6))
def test_the_length_of_vectors_does_not_matter(seed: int, scale: float) -> None:
    old = cloud(seed)
    new = noisy(old, seed)
    assert close(compare(old, new), compare(old, scale * new))


@FEW
@given(seeds, st.integers(1, 40))
def test_repeated_items_are_counted_and_change_nothing(seed: int, again: int) -> None:
    old = cloud(seed)
    new = noisy(old, seed)
    names = list(range(40)) + list(range(again))
    repeated = measure_geometry(
        Embedding("features", False),
        one_view(old[names]),
        one_view(new[names]),
        repeated=repeated_inputs(names),
    )
    assert repeated == replace(compare(old, new), duplicates=again)


@given(st.lists(st.integers(0, 5), max_size=12))
def test_the_first_of_equal_inputs_stays(names: list[int]) -> None:
    repeated = repeated_inputs(names)
    kept = [name for name, again in zip(names, repeated, strict=True) if not again]
    assert kept == list(dict.fromkeys(names))


@FEW
@given(seeds)
def test_a_constant_version_is_blocked(seed: int) -> None:
    old = cloud(seed)
    constant = np.tile(old[:1], (len(old), 1))
    geometry = compare(old, constant)
    assert word_of(geometry, SETTINGS) is CompatibilityWord.BLOCK
    assert geometry.flips_reindexed.value > 0.9


@FEW
@given(seeds, st.sets(st.integers(0, 39), max_size=10), st.sets(st.integers(0, 39), max_size=10))
def test_items_that_are_not_finite_are_counted(
    seed: int, old_bad: set[int], new_bad: set[int]
) -> None:
    old, new = cloud(seed), cloud(seed + 1)
    old[list(old_bad), 0], new[list(new_bad), 1] = np.nan, np.inf
    geometry = compare(old, new)
    assert (geometry.left_out_old, geometry.left_out_new) == (len(old_bad), len(new_bad))
    assert geometry.items == 40 - len(old_bad | new_bad)


def test_no_item_or_none_that_is_finite_is_measured_without_a_word() -> None:
    for rows in (np.zeros((0, 3)), np.full((5, 3), np.nan)):
        geometry = compare(rows, rows)
        assert geometry.items == 0 and geometry.overlap == Estimate(0.0, 0.0, 1.0, 0)
        assert word_of(geometry, SETTINGS) is CompatibilityWord.BLOCK


def test_an_interval_narrows_with_more_items_and_covers_the_truth() -> None:
    def width(items: int) -> float:
        old = cloud(0, items)
        estimate = compare(old, noisy(old, 1, 0.8)).overlap
        assert estimate.low <= estimate.value <= estimate.high
        return estimate.high - estimate.low

    assert width(400) < width(100) < width(25)


def test_what_the_new_space_no_longer_tells_apart_is_a_negative_flip() -> None:
    old = cloud(0)
    new = old.copy()
    new[20:] = new[:20]  # pairs of items with one vector each
    geometry = compare(old, new)
    assert geometry.flips_reindexed.value == 1
    assert geometry.flips_mixed is not None and geometry.flips_mixed.value == 0.5
