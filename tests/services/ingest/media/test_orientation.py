from __future__ import annotations

import numpy as np
import pytest

from services.ingest.media.orientation import Orientation, orientation_of


def matrix(a: float, b: float, c: float, d: float) -> bytes:
    values = [a, b, 0, c, d, 0, 0, 0, 16384]
    return np.array([round(value * 65536) for value in values], dtype=np.int32).tobytes()


def moved(a: int, b: int, c: int, d: int, pixels: np.ndarray) -> np.ndarray:
    """The picture by the definition: each pixel (x, y) goes to (a x + c y, b x + d y)."""
    height, width = pixels.shape[:2]
    places = {
        (a * x + c * y, b * x + d * y): pixels[y, x] for y in range(height) for x in range(width)
    }
    left = min(x for x, _ in places)
    top = min(y for _, y in places)
    out = np.zeros((3 * width if not b else 0, 0, 3), np.uint8)
    size = (width, height) if a else (height, width)
    out = np.zeros((size[1], size[0], 3), np.uint8)
    for (x, y), value in places.items():
        out[y - top, x - left] = value
    return out


@pytest.mark.parametrize(
    ("a", "b", "c", "d"),
    [
        (1, 0, 0, 1),
        (0, 1, -1, 0),
        (-1, 0, 0, -1),
        (0, -1, 1, 0),
        (-1, 0, 0, 1),
        (1, 0, 0, -1),
        (0, 1, 1, 0),
        (0, -1, -1, 0),
    ],
)
def test_each_quarter_turn_and_mirror_moves_pixels_as_the_matrix_says(
    a: int, b: int, c: int, d: int
) -> None:
    pixels = np.arange(3 * 4 * 3, dtype=np.uint8).reshape(3, 4, 3)
    found = orientation_of(matrix(a, b, c, d))
    assert found is not None
    assert np.array_equal(found.apply(pixels), moved(a, b, c, d, pixels))
    assert found.sideways == (a == 0)


def test_no_matrix_is_upright() -> None:
    assert orientation_of(None) == Orientation()


@pytest.mark.parametrize("data", [matrix(0.866, 0.5, -0.5, 0.866), matrix(0, 0, 0, 0), b"short"])
def test_any_other_matrix_is_not_understood(data: bytes) -> None:
    assert orientation_of(data) is None
