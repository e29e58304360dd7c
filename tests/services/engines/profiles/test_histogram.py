from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.engines.profiles.histogram import (
    MAX_LEVEL,
    MAX_SHAPES,
    ShapeCount,
    ShapeHistogram,
    ShapeRecorder,
    merge,
    round_up,
    tally,
)
from validators.contracts.digest import canonical_json
from validators.contracts.documents import load
from validators.contracts.errors import BadInput

SHAPES = st.fixed_dictionaries({"batch": st.integers(1, 64), "tokens": st.integers(1, 1 << 20)})
DIMS = ("batch", "tokens")


def many(seed: int, count: int = 6000) -> list[dict[str, int]]:
    draw = random.Random(seed)
    return [{"batch": draw.randint(1, 64), "tokens": draw.randint(1, 9000)} for _ in range(count)]


@given(st.lists(SHAPES, max_size=30))
@settings(deadline=None)
def test_it_counts_every_request_and_survives_its_document(shapes: list[dict[str, int]]) -> None:
    histogram = tally(DIMS, shapes)
    assert histogram.total == len(shapes)
    assert histogram.level == 0
    assert load(ShapeHistogram, canonical_json(histogram)) == histogram


def test_its_document_is_pinned() -> None:
    histogram = tally(DIMS, [{"batch": 2, "tokens": 7}, {"batch": 1, "tokens": 9}] * 2)
    assert canonical_json(histogram) == (
        b'{"counts":[{"count":2,"sizes":[1,9]},{"count":2,"sizes":[2,7]}],'
        b'"dims":["batch","tokens"],"level":0}'
    )


def test_it_stays_bounded_and_every_rounded_shape_covers_the_true_one() -> None:
    shapes = many(1)
    histogram = tally(DIMS, shapes)
    assert len(histogram.counts) <= MAX_SHAPES
    assert histogram.total == len(shapes)
    kept = {item.sizes for item in histogram.counts}
    for sizes in shapes:
        rounded = tuple(round_up(sizes[name], histogram.level) for name in DIMS)
        assert rounded in kept
        assert all(big >= sizes[name] for big, name in zip(rounded, DIMS, strict=True))


def test_four_wide_dimensions_stay_bounded_too() -> None:
    draw = random.Random(3)
    dims = ("a", "b", "c", "d")
    rows = [{name: 1 << draw.randint(0, 20) for name in dims} for _ in range(9000)]
    assert len(tally(dims, rows).counts) <= MAX_SHAPES


def test_the_order_of_recording_and_merging_changes_nothing() -> None:
    parts = [many(seed) for seed in (1, 2, 3)]
    whole = tally(DIMS, [sizes for part in reversed(parts) for sizes in part])
    one, two, three = (tally(DIMS, part) for part in parts)
    assert merge(one, two, three) == merge(merge(three, one), two) == whole


@given(st.integers(1, 1 << 20), st.integers(0, MAX_LEVEL), st.integers(0, MAX_LEVEL))
@settings(deadline=None)
def test_rounding_twice_is_rounding_once_to_the_coarser_grid(size: int, a: int, b: int) -> None:
    fine, coarse = min(a, b), max(a, b)
    assert round_up(round_up(size, fine), coarse) == round_up(size, coarse) >= size


@pytest.mark.parametrize(
    "sizes", [{"batch": 1}, {"batch": 0, "tokens": 1}, {"batch": 1, "tokens": (1 << 20) + 1}]
)
def test_what_is_no_shape_is_not_recorded(sizes: dict[str, int]) -> None:
    with pytest.raises(BadInput):
        ShapeRecorder(DIMS).add(sizes)


@pytest.mark.parametrize(
    ("dims", "counts", "level"),
    [
        ((), (), 0),
        (("a", "a"), (), 0),
        (("a", "b", "c", "d", "e"), (), 0),
        (("a",), (ShapeCount((2,), 1), ShapeCount((1,), 1)), 0),
        (("a",), (ShapeCount((1,), 1), ShapeCount((1,), 1)), 0),
        (("a",), (ShapeCount((1,), 0),), 0),
        (("a",), (ShapeCount((1, 1), 1),), 0),
        (("a",), (ShapeCount((5,), 1),), 19),
        (("a",), (), 99),
    ],
)
def test_a_histogram_that_no_recorder_makes_is_refused(
    dims: tuple[str, ...], counts: tuple[ShapeCount, ...], level: int
) -> None:
    with pytest.raises(BadInput):
        ShapeHistogram(dims, counts, level)


def test_histograms_of_other_dimensions_do_not_merge() -> None:
    with pytest.raises(BadInput):
        merge(tally(("a",), []), tally(("b",), []))
