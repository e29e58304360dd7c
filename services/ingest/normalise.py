"""One form for every medium, with nothing in it but the medium.

Pictures become upright RGB PNG without EXIF, GPS, thumbnails, profiles or comments, at most
MAX_SIDE_PX a side (so that any of them, even noise, is within the bound for pictures). Recordings
become 16 kHz mono PCM16 WAV with no other chunk. Text becomes NFC with plain line ends and without
invisible format characters, which would hide a name from every detector.
"""

from __future__ import annotations

import io
import unicodedata
import wave

import numpy as np
import numpy.typing as npt
from PIL import Image

from services.preprocess.media import SAMPLE_RATE_HZ, FloatPCM
from validators.contracts.errors import BadInput, Refused, TooLarge

MAX_SIDE_PX = 1024
MAX_TEXT_CHARACTERS = 20_000
_KEPT_FORMAT_CHARACTERS = "\u200c\u200d"  # the joiners that Indic scripts, Persian and emoji need
_KEPT_CONTROLS = "\n\t"

Pixels = npt.NDArray[np.uint8]


class EmptyMedium(BadInput):
    """A medium that is well formed and holds nothing."""


def shrink(picture: Image.Image) -> Pixels:
    """The picture's pixels [H, W, 3], scaled down to MAX_SIDE_PX where it is larger."""
    if max(picture.size) > MAX_SIDE_PX:
        picture = picture.copy()
        picture.thumbnail((MAX_SIDE_PX, MAX_SIDE_PX), Image.Resampling.LANCZOS)
    return np.asarray(picture.convert("RGB"), dtype=np.uint8).copy()


def write_png(pixels: Pixels, *, effort: int = 6) -> bytes:
    """PNG of RGB pixels and of nothing else. `effort` is zlib's, 1 to 9: 1 takes a third of the
    time of 6 and a sixth more bytes on photographs."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, format="PNG", compress_level=effort)
    return stream.getvalue()


def read_png(data: bytes) -> Pixels:
    """The pixels of a picture that `write_png` wrote.

    Raises:
        Refused: it is not in that form.
    """
    try:
        with Image.open(io.BytesIO(data), formats=("PNG",)) as picture:
            if picture.mode != "RGB" or max(picture.size) > MAX_SIDE_PX:
                raise Refused("a stored picture is not in the normal form")
            return np.asarray(picture, dtype=np.uint8).copy()
    except (OSError, ValueError, SyntaxError) as error:
        raise Refused("a stored picture is not in the normal form") from error


def to_pcm16(samples: FloatPCM) -> npt.NDArray[np.int16]:
    """Samples -1..1 as 16-bit integers, saturated."""
    scaled: npt.NDArray[np.float32] = np.rint(samples * np.float32(32768))
    return np.clip(scaled, -32768, 32767).astype(np.int16)


def write_wav(samples: npt.NDArray[np.int16]) -> bytes:
    """A WAV of mono samples at 16 kHz: one format chunk, one data chunk."""
    stream = io.BytesIO()
    with wave.open(stream, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(SAMPLE_RATE_HZ)
        out.writeframes(samples.astype("<i2").tobytes())
    return stream.getvalue()


def read_wav(data: bytes) -> npt.NDArray[np.int16]:
    """The samples of a recording that `write_wav` wrote.

    Raises:
        Refused: it is not in that form.
    """
    try:
        with wave.open(io.BytesIO(data), "rb") as source:
            form = (source.getnchannels(), source.getsampwidth(), source.getframerate())
            frames = source.readframes(source.getnframes())
    except (wave.Error, EOFError) as error:
        raise Refused("a stored recording is not in the normal form") from error
    if form != (1, 2, SAMPLE_RATE_HZ):
        raise Refused("a stored recording is not in the normal form")
    return np.frombuffer(frames, dtype="<i2").astype(np.int16)


def normalise_text(text: str) -> str:
    """The text in its one form.

    Raises:
        TooLarge: more than MAX_TEXT_CHARACTERS.
        EmptyMedium: nothing but white space and invisible characters.
        BadInput: lone surrogates, or control characters other than line end and tab.
    """
    if len(text) > MAX_TEXT_CHARACTERS:
        raise TooLarge(f"the text has more than {MAX_TEXT_CHARACTERS} characters")
    plain = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    plain = "".join(char for char in plain if not _invisible(char)).strip()
    if not plain:
        raise EmptyMedium("the text is empty")
    if any(_forbidden(char) for char in plain):
        raise BadInput("the text holds control characters or half of a surrogate pair")
    return plain


def _invisible(char: str) -> bool:
    return unicodedata.category(char) == "Cf" and char not in _KEPT_FORMAT_CHARACTERS


def _forbidden(char: str) -> bool:
    category = unicodedata.category(char)
    return category == "Cs" or (category == "Cc" and char not in _KEPT_CONTROLS)
