from __future__ import annotations

import numpy as np
import pytest

from services.deidentify.centerface import decode, load_centerface
from tests.services.media_files import picture

SIDES_PX = (320, 512)


@pytest.mark.parametrize(
    ("name", "face"),
    [("astronaut", (180, 60, 268, 176)), ("camera", (200, 115, 258, 196))],  # a profile
)
def test_a_face_is_found_where_it_is(name: str, face: tuple[int, int, int, int]) -> None:
    pixels = np.asarray(picture(name))
    (found,) = load_centerface().detect(pixels, threshold=0.2, sides_px=SIDES_PX)
    box = (found.left, found.top, found.right, found.bottom)
    assert found.score > 0.7
    assert np.abs(np.subtract(box, face)).max() < 15


@pytest.mark.parametrize("name", ["coffee", "coins", "rocket", "cat", "grass", "page"])
def test_nothing_is_found_where_no_face_is(name: str) -> None:
    pixels = np.asarray(picture(name))
    assert load_centerface().detect(pixels, threshold=0.2, sides_px=SIDES_PX) == []


def test_two_faces_of_two_sizes_are_both_found() -> None:
    astronaut = picture("astronaut")
    scene = astronaut.resize((1024, 1024))
    scene.paste(astronaut.crop((100, 0, 350, 250)).resize((120, 120)), (20, 20))
    found = load_centerface().detect(np.asarray(scene), threshold=0.2, sides_px=(320, 640, 1024))
    assert len(found) == 2


@pytest.mark.parametrize("size", [(1, 1), (7, 300), (300, 7), (33, 31)])
def test_a_picture_of_any_size_is_looked_at(size: tuple[int, int]) -> None:
    pixels = np.zeros((*size, 3), dtype=np.uint8)
    assert load_centerface().detect(pixels, threshold=0.2, sides_px=(64,)) == []


def test_a_point_of_the_heat_map_becomes_its_box() -> None:
    heat = np.zeros((8, 8), np.float32)
    heat[2, 3] = 0.9
    scale, offset = np.zeros((2, 2, 8, 8), np.float32)
    scale[:, 2, 3] = np.log([5, 2.5])  # 20 tall, 10 wide
    offset[:, 2, 3] = [0.25, -0.25]
    boxes, scores = decode(heat, scale, offset, 0.5)
    np.testing.assert_allclose(boxes, [[8, 1, 18, 21]], rtol=1e-5)
    np.testing.assert_allclose(scores, [0.9])
