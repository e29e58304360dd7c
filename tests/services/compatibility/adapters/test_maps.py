from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.compatibility.adapters.graph import INPUT, OUTPUT, to_onnx
from services.compatibility.adapters.maps import FittedMap, fit_affine, fit_procrustes, score
from services.compatibility.adapters.mlp import Training, fit_mlp
from services.compatibility.adapters.pairs import (
    MAX_ROWS,
    AdapterPairs,
    questions_of,
    split_pairs,
)
from services.compatibility.geometry import paired_cosines, unit_rows
from validators.compatibility.adapters import AdapterKind
from validators.contracts.errors import BadInput, TooLarge

Matrix = npt.NDArray[np.float64]


def cloud(seed: int, items: int = 80, dim: int = 8) -> Matrix:
    return np.random.default_rng(seed).standard_normal((items, dim))


def turn(seed: int, dim: int = 8) -> Matrix:
    return np.asarray(np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, dim)))[0])


def of(old: Matrix, new: Matrix) -> AdapterPairs:
    return AdapterPairs.of_items(old, new).sound()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_procrustes_recovers_a_turn_exactly_and_keeps_every_cosine(seed: int) -> None:
    old = unit_rows(cloud(seed))
    found = fit_procrustes(of(old, old @ turn(seed + 1)))
    assert found(old @ turn(seed + 1)) == pytest.approx(old, abs=1e-9)
    first = found.tensors["first"]
    assert first @ first.T == pytest.approx(np.eye(8), abs=1e-9)


@pytest.mark.parametrize(("wide", "narrow"), [(8, 5), (5, 8)])
def test_procrustes_between_dimensions_is_the_turn_of_padded_vectors(
    wide: int, narrow: int
) -> None:
    new, old = unit_rows(cloud(1, dim=wide)), unit_rows(cloud(2, dim=narrow))
    first = fit_procrustes(of(old, new)).tensors["first"]
    assert first.shape == (wide, narrow)
    gram = first @ first.T if wide < narrow else first.T @ first
    assert gram == pytest.approx(np.eye(5), abs=1e-9)
    best = np.trace(first.T @ new.T @ old)
    for seed in range(20):  # no other such matrix comes nearer
        other = turn(seed)[:wide, :narrow]
        assert np.trace(other.T @ new.T @ old) <= best


def test_the_affine_map_takes_the_rank_that_the_data_has() -> None:
    low = cloud(3, 200, 3)
    old, new = low @ cloud(4, 3, 40), low @ cloud(5, 3, 40)
    split = split_pairs(of(old, new))
    found = fit_affine(split.fitting, split.validation)
    assert found.detail == "rank 8"  # the smallest that is tried
    assert set(found.tensors) == {"first", "second", "bias"}
    assert paired_cosines(found(split.held_out.new), split.held_out.old).min() > 0.99


def test_the_network_learns_what_no_linear_map_can() -> None:
    new = unit_rows(cloud(6, 600, 4))
    old = unit_rows(np.abs(new) @ cloud(7, 4, 6))
    split = split_pairs(of(old, new))
    base = fit_affine(split.fitting, split.validation)
    questions = questions_of(split.validation, of(old, new))
    network = fit_mlp(base, split.fitting, questions, Training(hidden=32))
    assert network.kind is AdapterKind.MLP and score(network, questions) > score(base, questions)

    def cosine(found: FittedMap) -> float:
        return float(paired_cosines(found(split.held_out.new), split.held_out.old).mean())

    assert cosine(network) > cosine(base)
    again = fit_mlp(base, split.fitting, questions, Training(hidden=32))
    assert all((again.tensors[name] == value).all() for name, value in network.tensors.items())


@pytest.mark.parametrize("kind", list(AdapterKind))
def test_the_graph_computes_the_map_and_gives_unit_rows(kind: AdapterKind) -> None:
    new, old = cloud(8, 60, 7), cloud(9, 60, 5)
    split = split_pairs(of(old, new))
    found = {
        AdapterKind.PROCRUSTES: lambda: fit_procrustes(split.fitting),
        AdapterKind.AFFINE: lambda: fit_affine(split.fitting, split.validation),
        AdapterKind.MLP: lambda: fit_mlp(
            fit_procrustes(split.fitting), split.fitting,
            questions_of(split.validation, split.validation), Training(hidden=4, epochs=3),
        ),
    }[kind]()  # fmt: skip
    data = to_onnx(found)
    assert data == to_onnx(found)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    rows = np.concatenate([3 * new, np.zeros((1, 7))]).astype(np.float32)
    (answer,) = session.run([OUTPUT], {INPUT: rows})
    assert answer[:-1] == pytest.approx(unit_rows(found(unit_rows(3 * new))), abs=1e-5)
    assert np.isfinite(answer).all()


def test_views_of_an_item_stay_on_one_side() -> None:
    items = np.repeat(np.arange(100), 3)
    views = np.tile(np.arange(3), 100)
    pairs = AdapterPairs(cloud(1, 300), cloud(2, 300), items, views).sound()
    split = split_pairs(pairs)
    sides = [set(side.item) for side in (split.fitting, split.validation, split.held_out)]
    assert [len(side) for side in sides] == [56, 14, 30]
    assert len(set.union(*sides)) == 100


def test_questions_ask_with_their_second_view_for_their_own_first() -> None:
    items, views = np.array([7, 7, 5, 5]), np.array([1, 0, 0, 1])
    pairs = AdapterPairs(np.eye(4), np.eye(4), items, views)
    questions = questions_of(pairs, pairs)
    assert (questions.asking == np.eye(4)[[3, 0]]).all()  # items 5 and 7, view 1
    assert (questions.index[questions.own] == np.eye(4)[[2, 1]]).all()


def test_an_item_that_is_not_finite_in_any_view_is_left_out() -> None:
    old = cloud(1, 6)
    old[4, 0] = np.nan
    pairs = AdapterPairs(old, cloud(2, 6), np.arange(6) // 2, np.arange(6) % 2).sound()
    assert pairs.items.tolist() == [0, 1]


def test_pairs_that_do_not_fit_are_refused() -> None:
    with pytest.raises(BadInput):
        AdapterPairs.of_items(cloud(1, 5), cloud(2, 6)).sound()
    with pytest.raises(TooLarge):
        AdapterPairs.of_items(np.ones((MAX_ROWS + 1, 1)), np.ones((MAX_ROWS + 1, 1))).sound()
