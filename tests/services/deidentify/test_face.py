from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from services.deidentify.centerface import Face, load_centerface
from services.deidentify.face import FaceRedactor, grow, hide
from services.deidentify.policy import load_policy
from services.deidentify.pseudonyms import ReleaseKey
from services.ingest.folder import read_image
from services.ingest.normalise import read_png
from tests.services.media_files import encode, picture
from validators.contracts.dataset import Media
from validators.contracts.digest import digest_bytes

KEY = ReleaseKey(b"a" * 32, "tests")


def redactor(key: ReleaseKey = KEY) -> FaceRedactor:
    return FaceRedactor(load_policy("gdpr-default").rule("image"), key, load_centerface())


def stored(name: str) -> tuple[Media, bytes]:
    found = read_image(encode(picture(name)))
    return Media("image", digest_bytes(found.data), found.media_type, found.measures), found.data


def test_the_face_goes_and_the_rest_stays() -> None:
    media, data = stored("astronaut")
    result = redactor().redact(media, data)
    (region,) = result.regions
    left, top, right, bottom = region.place
    assert region.kind == "FACE"
    assert (left, top) < (181, 58), "a margin around the face"
    assert (right, bottom) > (269, 177)
    assert top < 58
    assert bottom > 177
    before, after = read_png(data), read_png(result.data)
    outside = np.ones(before.shape[:2], dtype=bool)
    outside[top:bottom, left:right] = False
    np.testing.assert_array_equal(after[outside], before[outside])
    detector = load_centerface()
    assert detector.detect(after, threshold=0.2, sides_px=(320, 512, 640)) == []


def test_what_is_left_of_a_face_has_no_structure() -> None:
    media, data = stored("astronaut")
    result = redactor().redact(media, data)
    left, top, right, bottom = result.regions[0].place
    before = read_png(data)[top:bottom, left:right].astype(float).mean(axis=2)
    after = read_png(result.data)[top:bottom, left:right].astype(float).mean(axis=2)

    def smoothed(values: np.ndarray) -> np.ndarray:
        return np.asarray(Image.fromarray(values).reduce(8)).ravel()

    assert abs(np.corrcoef(smoothed(before), smoothed(after))[0, 1]) < 0.3


def test_a_picture_without_a_face_is_not_changed() -> None:
    media, data = stored("coffee")
    result = redactor().redact(media, data)
    assert result.regions == ()
    assert result.data == data


def test_the_same_key_gives_the_same_bytes_and_another_key_others() -> None:
    media, data = stored("astronaut")
    once = redactor().redact(media, data)
    assert redactor().redact(media, data) == once
    other = redactor(ReleaseKey(b"b" * 32, "tests")).redact(media, data)
    assert other.regions == once.regions
    assert other.data != once.data


@given(
    st.tuples(st.integers(0, 99), st.integers(0, 79), st.integers(1, 60), st.integers(1, 60)),
    st.floats(0, 2),
)
def test_a_grown_box_holds_the_face_and_stays_in_the_picture(
    box: tuple[int, int, int, int], margin: float
) -> None:
    left, top, wide, tall = box
    face = Face(left, top, min(100, left + wide), min(80, top + tall), 1.0)
    grown = grow(face, margin, 100, 80)
    assert 0 <= grown.left <= face.left < face.right <= grown.right <= 100
    assert 0 <= grown.top <= face.top < face.bottom <= grown.bottom <= 80


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (40, 1), (39, 17)])
def test_a_region_of_any_size_is_hidden(size: tuple[int, int]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    before = pixels.copy()
    hide(pixels, Face(0, 0, size[1], size[0], 1.0), 0.25, KEY, b"")
    np.testing.assert_array_equal(pixels[size[0] :], before[size[0] :])
    np.testing.assert_array_equal(pixels[:, size[1] :], before[:, size[1] :])
