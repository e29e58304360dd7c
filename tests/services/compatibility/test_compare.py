from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from services.compatibility.compare import MAX_ITEMS, check_alone, compare_encoders
from tests.services.compatibility.engines import CONTRACT, linear, pairs, version
from validators.compatibility.measured import CompatibilityWord
from validators.compatibility.words import CompatibilitySettings, word_of
from validators.contracts.encoder import PreprocessSpec
from validators.contracts.errors import BadInput, TooLarge
from validators.contracts.ports import Tensors

RANDOM = np.random.default_rng(7)
ITEMS = list(RANDOM.standard_normal((60, 1, 16)).astype(np.float32))
WEIGHT = RANDOM.standard_normal((16, 8)).astype(np.float32)
OTHER = RANDOM.standard_normal((16, 8)).astype(np.float32)
ROTATION = np.linalg.qr(RANDOM.standard_normal((8, 8)))[0].astype(np.float32)
SETTINGS = CompatibilitySettings()


def test_a_version_is_compatible_with_itself() -> None:
    one = version("1", linear(WEIGHT))
    measured = compare_encoders(one, version("2", linear(WEIGHT)), pairs(ITEMS))
    (geometry,) = measured.geometries
    assert geometry.items == 60 and geometry.kept is not None and geometry.cosine is not None
    assert geometry.kept.value == geometry.overlap.value == 1
    assert geometry.cosine.value == pytest.approx(1)
    assert {item.first.value for item in geometry.retrievals} == {1}
    assert [drift.linf_drift for drift in measured.outputs] == [0, 0]
    assert measured.differences == () and measured.lost_outputs == ()
    assert word_of(geometry, SETTINGS) is CompatibilityWord.COMPATIBLE


def test_a_turned_space_needs_an_adapter() -> None:
    measured = compare_encoders(
        version("1", linear(WEIGHT)), version("2", linear(WEIGHT @ ROTATION)), pairs(ITEMS)
    )
    (geometry,) = measured.geometries
    assert geometry.cosine is not None and geometry.cosine.high < 0.5
    assert geometry.overlap.value > 0.98
    assert (geometry.adapted.value, geometry.adapted.count) == (1, 60)
    assert word_of(geometry, SETTINGS) is CompatibilityWord.ADAPTER


def test_an_unrelated_space_has_to_be_indexed_again() -> None:
    def unrelated(feeds: Tensors) -> dict[str, npt.NDArray[np.float32]]:
        features = np.abs(np.sin(97 * feeds["pixels"])) @ OTHER
        return {"features": features, "logits": features[:, :4]}

    measured = compare_encoders(version("1", linear(WEIGHT)), version("2", unrelated), pairs(ITEMS))
    assert word_of(measured.geometries[0], SETTINGS) is CompatibilityWord.REINDEX


def test_a_changed_dimension_is_compared_through_a_map_alone() -> None:
    wide = np.concatenate([WEIGHT, OTHER], axis=1)
    measured = compare_encoders(
        version("1", linear(WEIGHT)), version("2", linear(wide)), pairs(ITEMS)
    )
    (geometry,) = measured.geometries
    assert (geometry.old_dim, geometry.new_dim) == (8, 16)
    assert geometry.kept is None and geometry.cosine is None and geometry.flips_mixed is None
    assert geometry.retrieval("new", "old") is None
    assert geometry.adapted.value == 1
    assert measured.outputs[0].cosine_mean is None


def test_a_changed_scale_shows_in_the_largest_values() -> None:
    measured = compare_encoders(
        version("1", linear(WEIGHT)), version("2", linear(WEIGHT, 1.1)), pairs(ITEMS)
    )
    drift = measured.outputs[0].linf_drift
    assert drift == pytest.approx(0.1, rel=1e-3)


def test_nan_and_infinity_are_counted_by_element_and_keep_out_of_the_geometry() -> None:
    def broken(feeds: Tensors) -> dict[str, npt.NDArray[np.float32]]:
        features = feeds["pixels"] @ WEIGHT
        features[:, 0] = np.where(feeds["pixels"][:, 0] > 0, np.nan, features[:, 0])
        return {"features": features, "logits": np.full((1, 4), np.inf, np.float32)}

    measured = compare_encoders(version("1", linear(WEIGHT)), version("2", broken), pairs(ITEMS))
    positive = sum(float(item[0, 0]) > 0 for item in ITEMS)
    features, logits = measured.outputs
    assert features.nonfinite_new == pytest.approx(positive / (60 * 8))
    assert (logits.nonfinite_new, logits.linf_drift) == (1.0, None)
    (geometry,) = measured.geometries
    assert (geometry.items, geometry.left_out_new, geometry.left_out_old) == (
        60 - positive, positive, 0,
    )  # fmt: skip


def test_what_contracts_declare_differently_is_listed_by_name() -> None:
    old, new = (
        version("1", linear(WEIGHT)),
        version(
            "2",
            linear(WEIGHT),
            preprocess=PreprocessSpec("image", (("size", 240),)),
            outputs=(replace(CONTRACT.outputs[0], space="two"),),
        ),
    )
    measured = compare_encoders(old, new, pairs(ITEMS[:4]))
    assert [item.what for item in measured.differences] == [
        "preprocess.size",
        "outputs.features",
        "outputs.logits",
    ]
    assert measured.lost_outputs == ("logits",)
    assert not measured.geometries[0].same_space


def test_two_encoders_are_no_versions_of_each_other() -> None:
    one = version("1", linear(WEIGHT))
    with pytest.raises(BadInput):
        compare_encoders(one, version("1", linear(WEIGHT), name="text"), pairs(ITEMS))


def test_too_many_items_are_refused() -> None:
    one = version("1", linear(WEIGHT))
    with pytest.raises(TooLarge):
        compare_encoders(one, one, pairs(ITEMS[:1] * (MAX_ITEMS + 1)))


def test_an_item_that_comes_twice_counts_once() -> None:
    one, turned = version("1", linear(WEIGHT)), version("2", linear(WEIGHT @ ROTATION))
    (once,) = compare_encoders(one, turned, pairs(ITEMS[:20])).geometries
    (twice,) = compare_encoders(one, turned, pairs(ITEMS[:20] * 2)).geometries
    assert twice == replace(once, duplicates=20)


def test_second_views_ask_for_the_first_ones() -> None:
    views = [item + np.float32(0.1) * RANDOM.standard_normal((1, 16), np.float32) for item in ITEMS]
    one = version("1", linear(WEIGHT))
    (geometry,) = compare_encoders(
        one, version("2", linear(WEIGHT)), pairs(ITEMS), views=pairs(views)
    ).geometries
    found = geometry.retrieval("old", "old")
    assert geometry.views == 2 and found is not None
    assert 0.5 < found.first.low < found.first.value <= found.within.value
    assert geometry.kept is not None and geometry.kept.value == 1
    assert geometry.kept.count == round(found.first.value * 60)
    assert geometry.flips_mixed is not None and geometry.flips_mixed.value == 0


def test_views_of_some_items_only_are_refused() -> None:
    one = version("1", linear(WEIGHT))
    with pytest.raises(BadInput):
        compare_encoders(one, one, pairs(ITEMS), views=pairs(ITEMS[:-1]))


def test_the_time_of_one_item_is_measured() -> None:
    one = version("1", linear(WEIGHT))
    measured = compare_encoders(one, one, pairs(ITEMS))
    assert measured.encode_old_ms > 0 and measured.encode_new_ms > 0


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_hardly_any_items_are_measured_without_a_word(count: int) -> None:
    one = version("1", linear(WEIGHT))
    measured = compare_encoders(one, one, pairs(ITEMS[:count]))
    assert measured.items == count
    assert all(word_of(item, SETTINGS) in (None, CompatibilityWord.BLOCK)
               for item in measured.geometries)  # fmt: skip


def test_a_first_version_is_looked_at_in_two_halves() -> None:
    check = check_alone(version("1", linear(WEIGHT)), ({"pixels": item} for item in ITEMS))
    (half,) = check.halves
    assert check.items == 60 and check.nonfinite == 0
    assert half.first.effective_rank > 5 and half.second.effective_rank > 5
    assert half.across == pytest.approx(1, abs=0.2)


def test_an_encoder_that_answers_one_vector_has_no_spread() -> None:
    def constant(feeds: Tensors) -> dict[str, npt.NDArray[np.float32]]:
        return {"features": np.ones((1, 8), np.float32), "logits": np.ones((1, 4), np.float32)}

    check = check_alone(version("1", constant), ({"pixels": item} for item in ITEMS))
    assert check.halves[0].first.distance_mean == pytest.approx(0, abs=1e-9)
    assert math.isfinite(check.halves[0].first.effective_rank)
