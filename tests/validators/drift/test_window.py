from __future__ import annotations

import numpy as np
import pytest

from tests.validators.datasets import dataset, media, sample
from tests.validators.drift.windows import embedded, make_window
from validators.contracts.errors import BadInput
from validators.drift.columns import ABSENT, OTHER, Categories, Embedded, Scalars
from validators.drift.dataset_window import window_of
from validators.drift.window import DriftWindow, take
from validators.drift.window import sample as draw


def test_what_was_not_measured_is_absent_and_never_nan() -> None:
    column = Scalars.of([1.0, np.nan, np.inf, 4.0])
    assert column.present.tolist() == [True, False, False, True]
    assert column.observed().tolist() == [1, 4]
    with pytest.raises(BadInput):
        Scalars(np.array([np.nan]), np.array([True]))


def test_the_rarest_categories_become_one() -> None:
    column = Categories.of(["a", "a", "b", "c", None, "b", "d"], limit=2)
    assert column.vocabulary == (OTHER, "a", "b")
    assert column.counts() == {OTHER: 2, "a": 2, "b": 2}
    assert column.codes[4] == ABSENT


def test_codes_move_to_another_vocabulary() -> None:
    column = Categories.of(["a", None, "b"])
    assert column.recoded(["b", "z"]).tolist() == [ABSENT, ABSENT, 0]
    assert column.recoded([OTHER, "a"]).tolist() == [1, ABSENT, 0]


@pytest.mark.parametrize(
    ("codes", "words"), [([2], ("a", "b")), ([0], ("b", "a")), ([-2], ("a",)), ([0], ("a" * 129,))]
)
def test_impossible_categories_cannot_be_made(codes: list[int], words: tuple[str, ...]) -> None:
    with pytest.raises(BadInput):
        Categories(np.array(codes, np.int32), words)


@pytest.mark.parametrize(
    ("vectors", "rows"),
    [([[1.0], [2.0]], [0]), ([[1.0], [2.0]], [1, 1]), ([[np.nan]], [0]), ([[1.0]], [-1])],
)
def test_impossible_vectors_cannot_be_made(vectors: list[list[float]], rows: list[int]) -> None:
    with pytest.raises(BadInput):
        embedded(vectors, rows)


def test_columns_have_one_entry_a_row() -> None:
    with pytest.raises(BadInput):
        DriftWindow(3, {"x": Scalars.of([1.0])})
    with pytest.raises(BadInput):
        DriftWindow(1, embeddings={"image": embedded([[1.0]], [1])})
    with pytest.raises(BadInput):
        DriftWindow(3, seen=2)


def test_rows_that_are_taken_keep_their_vectors_and_pairs() -> None:
    window = make_window(
        {"x": [0, 1, 2, 3]},
        {"image": embedded([[0.0], [2.0], [3.0]], [0, 2, 3])},
        tags={"sensor": ["a", "b", "a", "b"]},
        times_ms=np.arange(4),
    )
    some = take(window, [3, 0, 1])
    assert some.rows == 3
    assert some.seen == 4
    assert some.descriptors["x"].values.tolist() == [0, 1, 3]
    assert some.embeddings["image"].rows.tolist() == [0, 2]
    assert some.embeddings["image"].vectors.ravel().tolist() == [0, 3]
    assert some.tags["sensor"].codes.tolist() == [0, 1, 1]
    assert take(window, []).rows == 0


def test_a_drawn_sample_is_the_same_for_the_same_seed() -> None:
    window = make_window({"x": np.arange(100.0)})
    drawn = [draw(window, 10, seed).descriptors["x"].values.tolist() for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_the_window_of_a_data_set_has_measures_presence_and_tags_by_row() -> None:
    samples = dataset(sample("a"), sample("b", media("text"), sensor="scanner"))
    vectors = Embedded(np.ones((1, 2), np.float32), np.array([0]), "s", None)
    found = window_of(samples, {"image": vectors})
    assert found.rows == 2
    assert found.categories["presence.image"].counts() == {"no": 1, "yes": 1}
    assert found.descriptors["image.brightness"].present.tolist() == [True, False]
    assert found.descriptors["text.words"].values.tolist() == [3, 3]
    assert found.tags["sensor"].vocabulary == ("camera", "scanner")
    assert found.times_ms is None


def test_samples_of_one_recording_are_numbered_alike_and_make_no_slice() -> None:
    found = window_of(dataset(*(sample(name, recording=name[0]) for name in ("a1", "a2", "b1"))))
    assert found.recordings is not None and found.recordings.tolist() == [0, 0, 1]
    assert "recording" not in found.tags and "sensor" in found.tags
