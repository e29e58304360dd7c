from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from services.compatibility.views import MAX_SIDE_PX, VIEWS, view_of
from services.preprocess.media import decode_image
from validators.contracts.errors import BadInput


def png(wide: int, high: int) -> bytes:
    pixels = np.random.default_rng(0).integers(0, 256, (high, wide, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, VIEWS - 1))
def test_every_picture_has_every_view(wide: int, high: int, number: int) -> None:
    seen = decode_image(view_of(png(wide, high), "image", number))  # type: ignore[arg-type]
    assert 1 <= seen.width <= wide and 1 <= seen.height <= high


def test_the_asking_view_is_the_picture_without_its_margin_and_parts_differ() -> None:
    data = png(90, 60)
    asking = decode_image(view_of(data, "image", 1))  # type: ignore[arg-type]
    assert asking.size == (80, 52)
    assert len({view_of(data, "image", number) for number in range(VIEWS)}) == VIEWS  # type: ignore[arg-type]


def test_a_large_picture_is_made_smaller() -> None:
    seen = decode_image(view_of(png(2000, 300), "image", 1))  # type: ignore[arg-type]
    assert seen.width == MAX_SIDE_PX


def test_a_text_loses_its_last_word_when_it_asks() -> None:
    assert view_of("a red bicycle in the snow", "wordpiece", 1) == "a red bicycle in the"
    assert view_of(b"a red bicycle in the snow", "wordpiece", 2) == "a red bicycle"
    assert view_of("a red bicycle in the snow", "wordpiece", 3) == "in the snow"
    assert view_of("a cat", "wordpiece", 1) == "a cat"


@given(st.text(), st.integers(0, VIEWS - 1))
def test_no_view_of_a_text_is_empty_unless_the_text_is(text: str, number: int) -> None:
    seen = view_of(text, "wordpiece", number)
    assert isinstance(seen, str) and bool(seen.strip()) == bool(text.strip())


@given(st.integers(1, 200), st.integers(0, VIEWS - 1))
def test_every_sound_has_every_view(count: int, number: int) -> None:
    samples = np.random.default_rng(count).uniform(-0.5, 0.5, count).astype(np.float32)
    seen = view_of(samples, "log_mel", number)
    assert isinstance(seen, np.ndarray) and seen.dtype == np.float32
    assert 1 <= len(seen) <= count
    assert (view_of(samples, "log_mel", number) == seen).all()


@pytest.mark.parametrize(
    ("raw", "kind", "number"),
    [("text", "image", 1), (b"", "tensor", 0), ("text", "wordpiece", VIEWS), (b"x", "image", 1)],
)
def test_what_has_no_views_is_refused(raw: bytes | str, kind: str, number: int) -> None:
    with pytest.raises(BadInput):
        view_of(raw, kind, number)
