from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from services.privacy_audit.formats import has_extra_chunks, is_sound, is_voice_descriptor
from tests.services.media_files import encode, tone, wav

PLAIN = encode(Image.new("RGB", (8, 8)))


def with_text() -> bytes:
    note = PngImagePlugin.PngInfo()
    note.add_text("Author", "somebody")
    return encode(Image.new("RGB", (8, 8)), pnginfo=note)


def test_a_plain_picture_carries_nothing_else() -> None:
    assert not has_extra_chunks(PLAIN)


@pytest.mark.parametrize(
    "data",
    [with_text(), PLAIN + b"trailer", PLAIN[:-12], b"", encode(Image.new("L", (4, 4)), "JPEG")],
)
def test_a_picture_that_carries_more_is_seen(data: bytes) -> None:
    assert has_extra_chunks(data)


@given(st.binary(max_size=60))
def test_no_chunk_raises(data: bytes) -> None:
    has_extra_chunks(b"\x89PNG\r\n\x1a\n" + data)


def test_sound_is_known_by_its_first_bytes() -> None:
    assert is_sound(wav(tone()))
    assert not is_sound(PLAIN)


GOOD = {"voice": "0" * 32, "frames": 98, "measures": {"rms_db": -20.5}}


@pytest.mark.parametrize(
    ("document", "good"),
    [
        (GOOD, True),
        ({**GOOD, "voice": "Eileen"}, False),
        ({**GOOD, "speaker": "Eileen"}, False),
        ({**GOOD, "frames": None}, False),
        ({**GOOD, "mfcc": np.zeros((98, 13)).tolist()}, False),
        ({**GOOD, "measures": [{"deep": [1, [2, {"er": "name"}]]}]}, False),
        ([GOOD], False),
        ("0" * 32, False),
    ],
)
def test_a_voice_descriptor_is_a_hash_and_few_numbers(document: object, good: bool) -> None:
    assert is_voice_descriptor(json.dumps(document).encode()) is good


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_no_descriptor(data: bytes) -> None:
    assert not is_voice_descriptor(data)
