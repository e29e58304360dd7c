from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from services.ingest.normalise import (
    MAX_SIDE_PX,
    EmptyMedium,
    normalise_text,
    read_png,
    read_wav,
    shrink,
    to_pcm16,
    write_png,
    write_wav,
)
from services.preprocess.media import MAX_IMAGE_BYTES
from tests.services.media_files import encode, picture, tone
from validators.contracts.errors import BadInput, Refused, TooLarge


def test_even_noise_at_the_largest_size_stays_within_the_bound_for_pictures() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (MAX_SIDE_PX, MAX_SIDE_PX, 3), dtype=np.uint8)
    assert len(write_png(noise)) < MAX_IMAGE_BYTES


def test_a_picture_survives_its_normal_form() -> None:
    pixels = shrink(picture("cat"))
    np.testing.assert_array_equal(read_png(write_png(pixels)), pixels)


def test_a_large_picture_is_scaled_and_keeps_its_shape() -> None:
    pixels = shrink(Image.new("RGB", (4096, 1024), "red"))
    assert pixels.shape == (256, 1024, 3)


@pytest.mark.parametrize(
    "data", [b"", b"text", encode(Image.new("L", (8, 8))), encode(Image.new("RGB", (8, 8)), "JPEG")]
)
def test_another_form_of_picture_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        read_png(data)


def test_a_recording_survives_its_normal_form() -> None:
    samples = to_pcm16(tone())
    np.testing.assert_array_equal(read_wav(write_wav(samples)), samples)


def test_samples_saturate_rather_than_wrap() -> None:
    assert to_pcm16(np.array([2.0, -2.0], dtype=np.float32)).tolist() == [32767, -32768]


@pytest.mark.parametrize("data", [b"", b"RIFF", b"RIFF\0\0\0\0WAVE"])
def test_another_form_of_recording_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        read_wav(data)


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("  a cat \r\n", "a cat"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("cafe\u0301", "caf\u00e9"),
        ("Ei\u200bleen\u00ad Col\u2060lins", "Eileen Collins"),
        ("\ufeffcat", "cat"),
        ("\u202ecat", "cat"),
        ("family \U0001f468\u200d\U0001f469", "family \U0001f468\u200d\U0001f469"),
    ],
)
def test_text_has_one_form(written: str, plain: str) -> None:
    assert normalise_text(written) == plain


@pytest.mark.parametrize(
    ("written", "error"),
    [
        ("", EmptyMedium),
        (" \u200b\n", EmptyMedium),
        ("a\x00b", BadInput),
        ("a\x1b[31m", BadInput),
        ("half \ud800", BadInput),
        ("x" * 20_001, TooLarge),
    ],
)
def test_unusable_text_is_refused(written: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        normalise_text(written)


@given(st.text(max_size=60))
def test_normalising_twice_changes_nothing(text: str) -> None:
    try:
        once = normalise_text(text)
    except BadInput:
        return
    assert normalise_text(once) == once
    assert once.encode().decode() == once
