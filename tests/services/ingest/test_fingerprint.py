"""The difference hash of a picture stays when the picture is scaled or compressed again."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from services.ingest.measures import fingerprint_image
from tests.services.media_files import picture
from validators.contracts.dataset import FINGERPRINTS


def bits(image: Image.Image) -> int:
    found = dict(fingerprint_image(np.asarray(image.convert("RGB"))))
    assert tuple(found) == FINGERPRINTS
    parts = [found[f"dhash_{part}"] for part in range(4)]
    assert all(0 <= value < 2**16 and value == int(value) for value in parts)
    return sum(int(value) << (16 * part) for part, value in enumerate(parts))


def compressed(image: Image.Image, quality: int) -> Image.Image:
    stream = io.BytesIO()
    image.convert("RGB").save(stream, format="JPEG", quality=quality)
    return Image.open(stream)


PICTURES = ("coffee", "rocket", "astronaut")


@pytest.mark.parametrize("name", PICTURES)
def test_a_copy_of_another_size_or_quality_differs_in_three_bits_at_most(name: str) -> None:
    image = picture(name)
    own = bits(image)
    copies = (
        image.resize((image.width // 2, image.height // 2)),
        image.resize((301, 217)),
        compressed(image, 60),
    )
    for copy in copies:
        assert (own ^ bits(copy)).bit_count() <= 3


def test_other_pictures_differ_in_many_bits() -> None:
    hashes = [bits(picture(name)) for name in PICTURES]
    for index, one in enumerate(hashes):
        assert all((one ^ other).bit_count() > 8 for other in hashes[index + 1 :])


@pytest.mark.parametrize("shape", [(1, 1), (3, 200), (200, 3), (8, 9)])
def test_a_flat_picture_of_any_shape_has_no_bit(shape: tuple[int, int]) -> None:
    assert bits(Image.new("RGB", (shape[1], shape[0]), (90, 140, 20))) == 0


def test_one_shape_in_two_colours_has_one_hash_and_two_tones() -> None:
    red, blue = (
        dict(fingerprint_image(np.full((20, 20, 3), colour, np.uint8)))
        for colour in ((200, 40, 40), (40, 40, 200))
    )
    assert red["tone_red"] > red["tone_blue"]
    assert blue["tone_blue"] > blue["tone_red"]
