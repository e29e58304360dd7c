from __future__ import annotations

import contextlib
import io
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from services.preprocess import media
from services.preprocess.media import decode_audio, decode_image, decode_pcm16
from tests.services.preprocess.samples import picture, recording, tone
from validators.contracts.errors import BadInput, TooLarge, Unsupported


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_each_known_format_becomes_rgb_of_the_same_size(form: str) -> None:
    decoded = decode_image(picture((31, 17), form=form))
    assert (decoded.mode, decoded.size) == ("RGB", (31, 17))


@pytest.mark.parametrize(
    ("mode", "colour"), [("L", 7), ("P", 1), ("RGBA", (1, 2, 3, 255)), ("I;16", 300), ("1", 1)]
)
def test_every_colour_mode_becomes_rgb(mode: str, colour: int | tuple[int, ...]) -> None:
    assert decode_image(picture(mode=mode, colour=colour)).mode == "RGB"


def test_transparency_is_laid_over_white() -> None:
    decoded = decode_image(picture(mode="RGBA", colour=(0, 0, 0, 0)))
    assert decoded.getpixel((0, 0)) == (255, 255, 255)


def test_sixteen_bit_grey_keeps_its_brightness() -> None:
    decoded = decode_image(picture(mode="I;16", colour=0x8040))
    assert decoded.getpixel((0, 0)) == (0x80, 0x80, 0x80)


def test_a_picture_lying_on_its_side_is_set_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # rotate by 90 degrees
    file = io.BytesIO()
    Image.new("RGB", (40, 20)).save(file, "JPEG", exif=exif)
    assert decode_image(file.getvalue()).size == (20, 40)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", BadInput),
        (b"not a picture", Unsupported),
        (picture(form="GIF"), Unsupported),
        (picture(form="BMP"), Unsupported),
        (picture((400, 400), form="JPEG")[:400], BadInput),
        (bytes(media.MAX_IMAGE_BYTES + 1), TooLarge),
    ],
    ids=["empty", "noise", "gif", "bmp", "cut short", "too many bytes"],
)
def test_what_is_no_whole_small_picture_is_refused(data: bytes, error: type[BadInput]) -> None:
    with pytest.raises(error):
        decode_image(data)


def test_a_small_file_that_unpacks_to_too_many_pixels_is_refused_before_it_does() -> None:
    bomb = picture((30_000, 8_000), mode="1", colour=0)
    assert len(bomb) < media.MAX_IMAGE_BYTES
    with pytest.raises(TooLarge):
        decode_image(bomb)


def test_a_header_that_promises_more_pixels_than_pillow_allows_is_too_large() -> None:
    data = bytearray(picture())
    data[16:24] = struct.pack(">II", 100_000, 100_000)
    with pytest.raises((TooLarge, Unsupported)):
        decode_image(bytes(data))


@given(st.binary(max_size=400), st.integers(0, 200))
@settings(max_examples=200, deadline=None)
def test_a_damaged_picture_decodes_or_is_refused_and_nothing_else(noise: bytes, at: int) -> None:
    whole = picture(form="PNG")
    damaged = whole[:at] + noise + whole[at + len(noise) :]
    with contextlib.suppress(BadInput):
        assert decode_image(damaged).mode == "RGB"


@pytest.mark.parametrize(
    ("form", "subtype"),
    [("WAV", "PCM_16"), ("WAV", "FLOAT"), ("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("OGG", "OPUS")],
)
def test_each_known_recording_becomes_float_mono(form: str, subtype: str) -> None:
    samples = decode_audio(recording(tone(), form=form, subtype=subtype))
    assert samples.dtype == np.float32
    assert samples.size == pytest.approx(8000, abs=700)


@pytest.mark.parametrize("rate_hz", [8_000, 22_050, 44_100, 48_000])
def test_a_tone_keeps_its_pitch_and_length_through_resampling(rate_hz: int) -> None:
    samples = decode_audio(recording(tone(hz=440, seconds=1, rate_hz=rate_hz), rate_hz=rate_hz))
    peak_hz = np.abs(np.fft.rfft(samples)).argmax() * 16_000 / samples.size
    assert samples.size == pytest.approx(16_000, abs=2)
    assert peak_hz == pytest.approx(440, abs=1)


def test_stereo_at_48_khz_is_averaged_and_resampled() -> None:
    left = tone(seconds=1, rate_hz=48_000)
    samples = decode_audio(recording(np.stack([left, -left], 1), rate_hz=48_000))
    assert samples.size == 16_000
    assert np.abs(samples).max() < 1e-3


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", BadInput),
        (b"not a recording", Unsupported),
        (recording(tone())[:44], BadInput),
        (recording(np.zeros(0, np.float32)), BadInput),
        (recording(tone(), form="AIFF"), Unsupported),
        (recording(np.array([0.0, np.nan], np.float32), subtype="FLOAT"), BadInput),
        (recording(tone(seconds=0.1), rate_hz=2_000), Unsupported),
        (recording(np.zeros((10, 9), np.float32)), TooLarge),
        (recording(np.zeros(61 * 8_000, np.float32), rate_hz=8_000), TooLarge),
        (bytes(media.MAX_AUDIO_BYTES + 1), TooLarge),
    ],
    ids=["no bytes", "noise", "no data", "no samples", "aiff", "nan", "2 kHz", "9 channels",
         "61 s", "too many bytes"],
)  # fmt: skip
def test_what_is_no_whole_short_recording_is_refused(data: bytes, error: type[BadInput]) -> None:
    with pytest.raises(error):
        decode_audio(data)


def test_raw_samples_are_little_endian_16_bit() -> None:
    samples = decode_pcm16(struct.pack("<3h", 0, 16_384, -32_768))
    np.testing.assert_array_equal(samples, np.array([0, 0.5, -1], np.float32))


@pytest.mark.parametrize(
    ("data", "error"), [(b"", BadInput), (b"abc", BadInput), (bytes(2 * 16_000 * 61), TooLarge)]
)
def test_raw_samples_that_cannot_be_are_refused(data: bytes, error: type[BadInput]) -> None:
    with pytest.raises(error):
        decode_pcm16(data)
