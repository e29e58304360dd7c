"""Small pictures, recordings and a tokenizer for these tests."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt
import soundfile
from PIL import Image
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing


def picture(
    size: tuple[int, int] = (40, 20), *, form: str = "PNG", mode: str = "RGB",
    colour: int | tuple[int, ...] = (200, 100, 50),
) -> bytes:  # fmt: skip
    file = io.BytesIO()
    Image.new(mode, size, colour).save(file, form)
    return file.getvalue()


def tone(
    *, hz: float = 440.0, seconds: float = 0.5, rate_hz: int = 16_000
) -> npt.NDArray[np.float32]:
    times = np.arange(int(seconds * rate_hz)) / rate_hz
    return (0.5 * np.sin(2 * np.pi * hz * times)).astype(np.float32)


def recording(
    samples: npt.NDArray[np.float32], *, rate_hz: int = 16_000, form: str = "WAV",
    subtype: str | None = None,
) -> bytes:  # fmt: skip
    file = io.BytesIO()
    soundfile.write(file, samples, rate_hz, format=form, subtype=subtype)
    return file.getvalue()


def tokenizer_file() -> bytes:
    words = ["[UNK]", "[CLS]", "[SEP]", "a", "sleep", "##ing", "cat"]
    tokenizer = Tokenizer(
        WordPiece({word: index for index, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    text: str = tokenizer.to_str()
    return text.encode()
