from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from services.preprocess.image import fit_picture, make_image
from tests.services.preprocess.samples import picture
from validators.contracts.encoder import PreprocessSpec
from validators.contracts.errors import BadInput


def image(**options: str | int | float) -> np.ndarray:
    spec = PreprocessSpec("image", tuple(sorted(options.items())))
    return make_image(spec, lambda _: b"")(picture((40, 20)))["pixels"]


def test_pixels_are_shifted_and_scaled_channel_by_channel() -> None:
    pixels = image(size=8, fit="stretch", mean="200, 100, 0", scale="1, 2, 50")
    assert pixels.dtype == np.float32
    np.testing.assert_allclose(pixels[0, :, 4, 4], [0, 0, 1], atol=1e-6)


def test_letterbox_keeps_the_whole_picture_on_white() -> None:
    pixels = image(size=16, fit="letterbox", scale=1)
    np.testing.assert_array_equal(pixels[0, :, 0, 8], [255, 255, 255])
    np.testing.assert_array_equal(pixels[0, :, 8, 8], [200, 100, 50])


@pytest.mark.parametrize("fit", ["crop", "stretch"])
def test_crop_and_stretch_leave_no_margin(fit: str) -> None:
    pixels = image(size=16, fit=fit, scale=1)
    np.testing.assert_array_equal(pixels[0, 0], np.full((16, 16), 200))


def test_crop_takes_the_centre() -> None:
    wide = Image.new("RGB", (90, 30), (0, 0, 0))
    wide.paste((255, 0, 0), (30, 0, 60, 30))
    cut = fit_picture(wide, 30, "crop", Image.Resampling.BILINEAR)
    assert cut.getpixel((2, 15)) == (255, 0, 0)


@given(
    st.integers(1, 200), st.integers(1, 200), st.integers(8, 64),
    st.sampled_from(["letterbox", "crop", "stretch"]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_every_picture_fits_the_square(wide: int, high: int, size: int, fit: str) -> None:
    fitted = fit_picture(Image.new("RGB", (wide, high)), size, fit, Image.Resampling.BICUBIC)
    assert fitted.size == (size, size)


@pytest.mark.parametrize("raw", ["a text", np.zeros((4, 4, 3), np.uint8)])
def test_what_is_not_bytes_is_refused(raw: object) -> None:
    with pytest.raises(BadInput):
        make_image(PreprocessSpec("image"), lambda _: b"")(raw)
