from __future__ import annotations

import numpy as np
import pytest

from services.privacy_audit.faces import find_faces, version
from tests.services.media_files import picture


def test_a_frontal_face_is_found_where_it_is() -> None:
    (face,) = [item for item in find_faces(np.asarray(picture("astronaut"))) if item.strong]
    assert np.abs(np.subtract(face.box, (175, 76, 266, 167))).max() < 12


@pytest.mark.parametrize("size_px", [160, 320, 1024])
def test_a_face_is_found_at_several_sizes(size_px: int) -> None:
    pixels = np.asarray(picture("astronaut").resize((size_px, size_px)))
    assert any(item.strong for item in find_faces(pixels))


@pytest.mark.parametrize("name", ["coffee", "cat", "coins", "rocket", "brick", "page"])
def test_nothing_is_found_where_no_face_is(name: str) -> None:
    assert find_faces(np.asarray(picture(name))) == []


@pytest.mark.parametrize("shape", [(1, 1, 3), (5, 200, 3)])
def test_a_tiny_picture_is_looked_at(shape: tuple[int, int, int]) -> None:
    assert find_faces(np.zeros(shape, dtype=np.uint8)) == []


def test_the_detector_says_which_version_it_is() -> None:
    assert version().startswith("dlib-hog ")
