"""Which layers belong together, how far they are apart, and where two versions part."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.validators.compatibility.layer_values import layer, trace, version
from validators.compatibility.alignment import align, align_layers, common_subsequence
from validators.compatibility.facts import ModelFacts, OutputFact
from validators.compatibility.layer_drift import measure_drifts
from validators.compatibility.layers import DriftLimits, first_divergence
from validators.compatibility.sandboxed import ExaminedVersion, compare_lengths
from validators.compatibility.shares import share_text, upper_share

WORDS = st.lists(st.sampled_from("abc"), max_size=12)


@given(WORDS, WORDS)
def test_a_common_subsequence_is_in_order_and_the_longest(old: list[str], new: list[str]) -> None:
    pairs = common_subsequence(old, new)
    assert all(old[a] == new[b] for a, b in pairs)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))
    assert len(pairs) == _longest(tuple(old), tuple(new))


def _longest(old: tuple[str, ...], new: tuple[str, ...]) -> int:
    table = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for row, word in enumerate(old):
        for column, other in enumerate(new):
            met = table[row][column] + (word == other)
            table[row + 1][column + 1] = max(met, table[row][column + 1], table[row + 1][column])
    return table[-1][-1]


KEYS = st.lists(st.tuples(st.sampled_from("pqrst"), st.sampled_from("ab")), max_size=8, unique=True)


@given(KEYS, KEYS)
def test_every_layer_has_one_partner_of_its_kind_at_most(
    old: list[tuple[str, str]], new: list[tuple[str, str]]
) -> None:
    pairs = align(old, new)
    assert all(old[a][1] == new[b][1] for a, b in pairs)
    assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)
    assert [b for _, b in pairs] == sorted(b for _, b in pairs)


@given(KEYS)
def test_a_version_is_aligned_with_itself_throughout(keys: list[tuple[str, str]]) -> None:
    assert align(keys, keys) == tuple((place, place) for place in range(len(keys)))


def test_renamed_layers_are_aligned_by_kind_in_order() -> None:
    old = [layer(f"old.{place}", kind) for place, kind in enumerate(("Conv", "Norm", "Relu"))]
    new = [
        layer(f"new.{place}", kind) for place, kind in enumerate(("Conv", "Relu", "Norm", "Relu"))
    ]
    pairs = [(a.name, b.name) for a, b in align_layers(old, new)]
    assert pairs == [("old.0", "new.0"), ("old.1", "new.2"), ("old.2", "new.3")]


def test_the_first_layer_beyond_the_limits_is_named_with_the_last_within() -> None:
    names = [layer(name) for name in ("a", "b", "c", "d")]
    drifts = measure_drifts(trace(names), trace(names, turned=("c",)))
    found = first_divergence(drifts, DriftLimits())
    assert found is not None and found.last_agreeing is not None
    assert (found.first.new, found.last_agreeing.new) == ("c", "b")
    assert found.first.cosine == pytest.approx(0.0)


def test_versions_of_other_sizes_are_compared_by_their_peaks() -> None:
    old = [layer("a"), layer("b")]
    new = [layer("a", item_size=(9,) * 4), layer("b", item_size=(9,) * 4, item_linf=(2.1,) * 4)]
    drifts = measure_drifts(trace(old), trace(new))
    assert [drift.cosine for drift in drifts] == [None, None]
    found = first_divergence(drifts, DriftLimits())
    assert found is not None and found.first.new == "b"
    assert found.first.linf == pytest.approx(0.05)


def test_a_layer_that_breaks_parts_even_where_the_rest_agrees() -> None:
    drifts = measure_drifts(
        trace([layer("a"), layer("b")]),
        trace([layer("a"), layer("b", nan=3, item_broken=(0, 3, 0, 0))]),
    )
    found = first_divergence(drifts, DriftLimits())
    assert found is not None and found.first.new == "b"
    assert (found.first.broken_old, found.first.broken_new) == (0.0, 0.25)


def test_layers_of_zeros_agree_and_drift_from_zero_is_finite() -> None:
    zero = layer("a", linf=0.0, variance=0.0, item_linf=(0.0,) * 4)
    (same,) = measure_drifts(trace([zero]), trace([zero]))
    assert (same.linf, same.mean, same.variance) == (None, 0.0, 0.0)
    (moved,) = measure_drifts(trace([zero]), trace([layer("a", mean=1.0)]))
    assert moved.mean == moved.variance == 1e9


@pytest.mark.parametrize(
    ("seen", "items", "text"),
    [
        (0, 64, "0 of 64 items: up to 4.6 %"),
        (0, 500, "0 of 500 items: up to 0.6 %"),
        (1, 500, "1 of 500 items: 0.2 %, up to 0.95 %"),
        (8, 8, "8 of 8 items: 100 %, up to 100 %"),
        (0, 0, "0 of 0 items: up to 100 %"),
    ],
)
def test_none_seen_is_not_never(seen: int, items: int, text: str) -> None:
    assert share_text(seen, items) == text


@given(st.integers(0, 300), st.integers(1, 300))
def test_the_bound_is_above_what_was_seen_and_falls_with_more_items(seen: int, items: int) -> None:
    seen = min(seen, items)
    bound = upper_share(seen, items)
    assert seen / items <= bound <= 1.0
    assert upper_share(seen, items + 50) <= bound
    if seen == 0:
        assert bound == pytest.approx(1 - 0.05 ** (1 / items))


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ((1.0, 1.004), (1.0, 1.0), None),
        ((1.0, 1.0), (3.0, 8.25), ("unit length", "lengths from 3 to 8.25")),
        ((3.0, 8.25), (2.0, 4.0), None),
    ],
)
def test_vectors_that_left_unit_length_are_found_by_measuring(
    old: tuple[float, float], new: tuple[float, float], found: tuple[str, str] | None
) -> None:
    def made(lengths: tuple[float, float]) -> ExaminedVersion:
        traced = trace([layer("vector", output=True, item_norm=lengths * 2)])
        facts = ModelFacts(17, 0, (), (), (), (), (OutputFact("vector", "mean", False),))
        return replace(version(traced), graph=facts)

    differences = compare_lengths(made(old), made(new))
    assert [(item.old, item.new) for item in differences] == ([found] if found else [])
