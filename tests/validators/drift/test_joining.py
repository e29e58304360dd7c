from __future__ import annotations

import numpy as np
import pytest

from tests.validators.drift.windows import ORIGIN, OTHER_ORIGIN, embedded, make_window
from validators.contracts.digest import digest_bytes
from validators.contracts.errors import BadInput, Refused
from validators.contracts.origin import VectorOrigin
from validators.drift.columns import ABSENT
from validators.drift.joining import concatenate
from validators.drift.window import DriftWindow

SIBLING = VectorOrigin(ORIGIN.encoder, digest_bytes(b"another engine"))


def test_windows_join_row_after_row() -> None:
    first = make_window(
        {"x": [1, 2]}, {"image": embedded([[1.0]], [1])}, tags={"sensor": ["a", "b"]},
        recordings=np.array([4, 4], np.int32), from_ms=10, until_ms=20,
    )  # fmt: skip
    second = make_window(
        {"y": [3, 4]}, {"image": [[2.0], [3.0]]}, tags={"sensor": ["b", "c"]}, from_ms=20,
        until_ms=30,
    )  # fmt: skip
    both = concatenate([first, second])
    assert both.rows == both.seen == 4
    assert both.descriptors["x"].present.tolist() == [True, True, False, False]
    assert both.descriptors["y"].values.tolist() == [0, 0, 3, 4]
    assert both.embeddings["image"].rows.tolist() == [1, 2, 3]
    assert both.tags["sensor"].counts() == {"a": 1, "b": 2, "c": 1}
    assert both.recordings is not None
    assert both.recordings.tolist() == [0, 0, 1, 2]
    assert (both.from_ms, both.until_ms) == (10, 30)


def test_a_column_of_one_window_is_absent_in_the_other() -> None:
    both = concatenate([make_window(categories={"label": ["a"]}), make_window({"x": [1]})])
    assert both.categories["label"].codes.tolist() == [0, ABSENT]


def test_every_item_that_was_seen_counts_alike() -> None:
    full = make_window({"x": np.zeros(1000)}, seen=1000)
    thin = make_window({"x": np.ones(500)}, seen=5000)
    both = concatenate([full, thin])
    assert both.rows == 600
    assert both.seen == 6000
    assert both.descriptors["x"].values.sum() == 500


def test_no_more_rows_are_kept_than_asked() -> None:
    windows = [make_window({"x": np.full(300, float(place))}) for place in range(3)]
    both = concatenate(windows, maximum_rows=90)
    assert np.bincount(both.descriptors["x"].values.astype(int)).tolist() == [30, 30, 30]


@pytest.mark.parametrize(
    "other",
    [
        embedded([[1.0]], origin=OTHER_ORIGIN),
        embedded([[1.0]], origin=SIBLING),
        embedded([[1.0]], space="another"),
        embedded([[1.0, 2.0]]),
        embedded([[1.0]], origin=None),
    ],
)
def test_vectors_that_do_not_fit_never_join(other: object) -> None:
    with pytest.raises(Refused):
        concatenate([make_window({}, {"image": [[1.0]]}), make_window({}, {"image": other})])  # type: ignore[dict-item]


def test_vectors_of_engines_that_passed_parity_join() -> None:
    siblings = {frozenset((ORIGIN.engine, SIBLING.engine))}
    windows = [make_window({}, {"image": embedded([[1.0]], origin=o)}) for o in (ORIGIN, SIBLING)]
    assert concatenate(windows, siblings=siblings).rows == 2


def test_windows_without_rows_join_too() -> None:
    empty = DriftWindow(0)
    assert concatenate([empty, make_window({"x": [1]}), empty]).rows == 1
    assert concatenate([empty]).rows == 0


def test_nothing_and_old_windows_cannot_be_joined() -> None:
    with pytest.raises(BadInput):
        concatenate([])
    with pytest.raises(Refused):
        concatenate([DriftWindow(0, format=1)])
