from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.engines.precision.kept import NEIGHBOURS, tasks_kept
from services.engines.tensors import Arrays
from tests.services.engines.models import IMAGE

Array = npt.NDArray[Any]


def answers(features: Array, logits: Array) -> list[Arrays]:
    return [{"features": f[None], "logits": g[None]} for f, g in zip(features, logits, strict=True)]


def some(items: int, seed: int = 0) -> tuple[Array, Array]:
    draw = np.random.default_rng(seed)
    return draw.normal(size=(items, 8)), draw.normal(size=(items, 4))


@given(st.integers(2, 30), st.integers(0, 1000))
def test_a_model_keeps_all_of_its_own_decisions(items: int, seed: int) -> None:
    source = answers(*some(items, seed))
    near, top = tasks_kept(IMAGE, source, source)
    assert (near.output, near.kept, near.items, near.overlap) == ("features", items, items, 1.0)
    assert (top.output, top.kept, top.items) == ("logits", items, items)
    assert near.low <= near.after <= near.high


@given(st.integers(2, 30), st.floats(1e-3, 1e3), st.integers(0, 1000))
def test_a_scale_changes_no_decision(items: int, scale: float, seed: int) -> None:
    features, logits = some(items, seed)
    near, top = tasks_kept(
        IMAGE, answers(features, logits), answers(features * scale, logits * scale)
    )
    assert (near.kept, top.kept) == (items, items)


def test_a_lost_neighbour_and_a_lost_class_are_counted() -> None:
    features = np.eye(8)[[0, 0, 1, 1]] + 0.01 * np.arange(32).reshape(4, 8) / 32
    moved = features.copy()
    moved[0] = features[2]  # now nearest to the second pair
    logits = np.eye(4)
    wrong = logits[[1, 1, 2, 3]]
    near, top = tasks_kept(IMAGE, answers(features, logits), answers(moved, wrong))
    assert near.kept < near.items
    assert (top.kept, top.items) == (3, 4)


def test_a_tie_in_the_source_may_be_broken_either_way() -> None:
    features = np.ones((3, 8))  # everybody is everybody's nearest
    logits = np.zeros((3, 4))
    other = np.eye(4)[[0, 1, 2]]
    near, top = tasks_kept(IMAGE, answers(features, logits), answers(some(3)[0], other))
    assert (near.kept, top.kept) == (3, 3)


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_what_is_not_finite_keeps_nothing(broken: float) -> None:
    features, logits = some(5)
    found_features, found_logits = features.copy(), logits.copy()
    found_features[0, 0] = found_logits[0, 0] = broken
    near, top = tasks_kept(IMAGE, answers(features, logits), answers(found_features, found_logits))
    assert near.kept <= 4 and top.kept == 4


def test_only_judged_items_count_and_the_others_stay_neighbours() -> None:
    features, logits = some(NEIGHBOURS + 2)
    wrong = logits.copy()
    wrong[0] = -wrong[0]
    source, engine = answers(features, logits), answers(features, wrong)
    near, top = tasks_kept(IMAGE, source, engine, judged=[1, 2])
    assert (near.items, near.kept, top.items, top.kept) == (2, 2, 2, 2)
    assert tasks_kept(IMAGE, source, engine, judged=[]) == ()


def test_one_item_has_no_neighbour() -> None:
    source = answers(*some(1))
    assert [metric.output for metric in tasks_kept(IMAGE, source, source)] == ["logits"]
