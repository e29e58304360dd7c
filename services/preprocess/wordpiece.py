"""Text → token ids and mask, by the encoder's own tokenizer file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from services.preprocess.options import read_options
from validators.contracts.digest import Digest
from validators.contracts.encoder import PreprocessSpec
from validators.contracts.errors import BadInput, TooLarge

MAX_CHARACTERS = 20_000
MAX_TOKENIZER_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class WordpiecePreprocessor:
    """A text (or its UTF-8 bytes) → `ids`, `mask` and, where named, `types`, int64 [1, tokens].

    Longer texts are cut at `max_tokens`, special tokens included.
    """

    tokenizer: Tokenizer
    ids: str
    mask: str
    types: str | None

    def __call__(self, raw: object) -> dict[str, npt.NDArray[Any]]:
        encoding = self.tokenizer.encode(read_text(raw))
        tensors = {
            self.ids: np.array([encoding.ids], np.int64),
            self.mask: np.array([encoding.attention_mask], np.int64),
        }
        if self.types is not None:
            tensors[self.types] = np.array([encoding.type_ids], np.int64)
        return tensors


def make_wordpiece(
    spec: PreprocessSpec, read_asset: Callable[[Digest], bytes]
) -> WordpiecePreprocessor:
    """Options: max_tokens, ids, mask, types (tensor names); asset `tokenizer` (tokenizers JSON)."""
    options = read_options(spec, ("max_tokens", "ids", "mask", "types"))
    tokenizer = load_tokenizer(read_asset(spec.asset("tokenizer")))
    tokenizer.no_padding()
    tokenizer.enable_truncation(options.integer("max_tokens", 128, 3, 8192))
    return WordpiecePreprocessor(
        tokenizer=tokenizer,
        ids=options.text("ids", "input_ids"),
        mask=options.text("mask", "attention_mask"),
        types=options.text("types", "types") if "types" in options.values else None,
    )


def load_tokenizer(data: bytes) -> Tokenizer:
    """A tokenizers JSON file as a tokenizer.

    Raises:
        BadInput: too large, or not such a file.
    """
    if len(data) > MAX_TOKENIZER_BYTES:
        raise TooLarge(f"a tokenizer of {len(data)} bytes is too large", where="tokenizer")
    try:
        return Tokenizer.from_str(data.decode("utf-8"))
    except Exception as error:  # the tokenizers library raises bare Exception for a bad file
        raise BadInput(
            "the tokenizer asset is not a tokenizers JSON file",
            where="tokenizer",
            remedy="Give the encoder's tokenizer.json.",
        ) from error


def read_text(raw: object) -> str:
    """The text of a request, checked.

    Raises:
        BadInput: not text, not UTF-8, or nothing but white space.
        TooLarge: more than MAX_CHARACTERS.
    """
    if isinstance(raw, bytes):
        try:
            raw = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadInput("the text is not UTF-8", where="text") from error
    if not isinstance(raw, str):
        raise BadInput(f"a text was given as {type(raw).__name__}", where="text")
    if len(raw) > MAX_CHARACTERS:
        raise TooLarge(
            f"the text has {len(raw)} characters, more than {MAX_CHARACTERS}",
            where="text",
            remedy="Send a shorter text.",
        )
    if not raw.strip():
        raise BadInput("the text is empty", where="text", remedy="Write something to look for.")
    return raw
