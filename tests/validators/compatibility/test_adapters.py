from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.compatibility.adapters import (
    MINIMUM_PAIRS,
    AdapterKind,
    AdapterMeasurement,
    choose_adapter,
    missing_pairs,
)
from validators.compatibility.estimates import Estimate, share_of

P, A, M = AdapterKind.PROCRUSTES, AdapterKind.AFFINE, AdapterKind.MLP


def measured(kind: AdapterKind, kept: int, total: int = 100) -> AdapterMeasurement:
    share = share_of(kept, total)
    return AdapterMeasurement(
        kind, 200, total, 10, share, share, share, share_of(total, total), share,
        share_of(total - kept, total), Estimate(0.9, 0.89, 0.91, total), 0.1, 64,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kept", "chosen"),
    [
        ({P: 97, A: 98, M: 98}, P),  # the simplest within reach
        ({P: 88, A: 99, M: 99}, A),  # the turn is clearly worse
        ({P: 60, A: 70, M: 99}, M),
        ({P: 84, A: 91, M: 92}, A),  # the turn is within reach, its lower bound is not
        ({P: 20, A: 40, M: 60}, None),
        ({A: 95}, A),
        ({}, None),
    ],
)
def test_the_simplest_that_no_other_clearly_beats_is_taken(
    kept: dict[AdapterKind, int], chosen: AdapterKind | None
) -> None:
    choice = choose_adapter([measured(kind, hits) for kind, hits in kept.items()])
    assert (choice.chosen.kind if choice.chosen else None) is chosen
    assert choice.reason


def test_nothing_is_taken_on_too_few_pairs() -> None:
    choice = choose_adapter([measured(P, 100)], pairs=MINIMUM_PAIRS - 10)
    assert choice.chosen is None and choice.missing_pairs == 10
    assert missing_pairs(MINIMUM_PAIRS) == 0


def test_a_perfect_result_on_a_handful_is_not_enough() -> None:
    assert choose_adapter([measured(P, 10, 10)]).chosen is None


@given(st.lists(st.tuples(st.sampled_from(AdapterKind), st.integers(0, 100)), max_size=5))
def test_what_is_taken_always_keeps_enough_by_its_lower_bound(
    found: list[tuple[AdapterKind, int]],
) -> None:
    choice = choose_adapter([measured(kind, hits) for kind, hits in found])
    able = [share_of(hits, 100).low >= 0.8 for _, hits in found]
    assert (choice.chosen is not None) is any(able)
    assert choice.chosen is None or choice.chosen.kept.low >= 0.8


def test_the_order_of_candidates_does_not_matter() -> None:
    candidates = [measured(P, 97), measured(A, 98), measured(M, 98)]
    assert choose_adapter(candidates) == choose_adapter(reversed(candidates))
    assert choose_adapter([replace(candidates[0], kind=M), measured(P, 97)]).chosen == candidates[0]
