from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.media.layout import Block, Box, read_place, reading_order, turn_back

unit = st.floats(0, 1)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    left, right = sorted((draw(unit), draw(unit)))
    top, bottom = sorted((draw(unit), draw(unit)))
    return Box(left, top, right, bottom)


def line(left: float, top: float, width: float = 0.3) -> Box:
    return Box(left, top, left + width, top + 0.02)


def test_a_column_is_read_before_the_next_and_a_title_before_both() -> None:
    title, foot = line(0.1, 0.05, 0.8), line(0.3, 0.9, 0.4)
    left = [line(0.1, 0.1 + 0.03 * at) for at in range(5)]
    right = [line(0.55, 0.1 + 0.03 * at) for at in range(5)]
    mixed = [foot, *right, *left, title]
    assert [mixed[at] for at in reading_order(mixed)] == [title, *left, *right, foot]


def test_uneven_columns_are_still_columns() -> None:
    left = [line(0.1, 0.1 + 0.03 * at) for at in range(9)]
    right = [line(0.55, 0.115 + 0.031 * at) for at in range(4)]
    mixed = [*right, *left]
    assert [mixed[at] for at in reading_order(mixed)] == [*left, *right]


def test_two_sections_of_columns_are_read_one_after_the_other() -> None:
    first = [line(0.1, 0.1), line(0.1, 0.14), line(0.55, 0.1), line(0.55, 0.14)]
    heading = line(0.1, 0.3, 0.8)
    second = [line(0.1, 0.4), line(0.1, 0.44), line(0.55, 0.4), line(0.55, 0.44)]
    mixed = [*second, heading, *reversed(first)]
    assert [mixed[at] for at in reading_order(mixed)] == [*first, heading, *second]


def test_words_of_one_line_are_read_from_the_left() -> None:
    words = [line(0.5, 0.1, 0.1), line(0.1, 0.101, 0.1), line(0.3, 0.099, 0.1)]
    assert reading_order(words) == [1, 2, 0]


@given(st.lists(boxes(), max_size=40), st.floats(0.3, 3))
def test_every_block_is_read_once(page: list[Box], aspect: float) -> None:
    assert sorted(reading_order(page, aspect)) == list(range(len(page)))


@given(st.lists(boxes(), max_size=20), st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_how_blocks_were_found(
    page: list[Box], random: object
) -> None:
    distinct = list(dict.fromkeys(page))
    shuffled = distinct.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one = [distinct[at] for at in reading_order(distinct)]
    two = [shuffled[at] for at in reading_order(shuffled)]
    assert [(box.left, box.top) for box in one] == [(box.left, box.top) for box in two]


def test_thousands_of_blocks_are_ordered_without_deep_recursion() -> None:
    page = [
        Box(0.01 * (at % 9), at / 4000, 0.01 * (at % 9) + 0.2, (at + 0.5) / 4000)
        for at in range(4000)
    ]
    assert reading_order(page) == list(range(4000))


@given(boxes(), st.integers(0, 3))
def test_turning_back_and_on_again_is_where_it_was(box: Box, turns: int) -> None:
    again = turn_back(turn_back(box, turns), 4 - turns)
    for one, two in zip(
        (again.left, again.top, again.right, again.bottom),
        (box.left, box.top, box.right, box.bottom),
        strict=True,
    ):
        assert one == pytest.approx(two, abs=1e-12)


@given(boxes(), st.integers(1, 500), st.integers(1, 2000), st.floats(0, 1), st.text())
def test_a_place_can_be_read_back(
    box: Box, page: int, order: int, confidence: float, text: str
) -> None:
    block = Block(page, order, box, "ocr", confidence, text)
    again = read_place(block.place, text)
    assert again.place == block.place
    assert (again.page, again.order, again.source, again.text) == (page, order, "ocr", text)
    assert again.box.left == pytest.approx(box.left, abs=1e-4)


@pytest.mark.parametrize(
    "place", ["", "frame 3", "page 1 block 2", "page x block 1 box 0,0,1,1 ocr 1"]
)
def test_another_place_is_no_block_s(place: str) -> None:
    with pytest.raises(ValueError, match="not the place"):
        read_place(place, "")
