from __future__ import annotations

import numpy as np
import pytest

from services.preprocess.wordpiece import MAX_CHARACTERS, WordpiecePreprocessor, make_wordpiece
from tests.services.preprocess.samples import tokenizer_file
from validators.contracts.digest import Digest
from validators.contracts.encoder import PreprocessSpec
from validators.contracts.errors import BadInput, NotFound, TooLarge

ASSET = Digest("sha256:" + "0" * 64)


def wordpiece(**options: str | int) -> WordpiecePreprocessor:
    spec = PreprocessSpec("wordpiece", tuple(sorted(options.items())), (("tokenizer", ASSET),))
    return make_wordpiece(spec, lambda _: tokenizer_file())


def test_a_text_becomes_ids_and_a_mask_under_the_declared_names() -> None:
    tensors = wordpiece(ids="tokens", mask="kept", types="segments")("a sleeping cat")
    np.testing.assert_array_equal(tensors["tokens"], [[1, 3, 4, 5, 6, 2]])
    np.testing.assert_array_equal(tensors["kept"], np.ones((1, 6)))
    np.testing.assert_array_equal(tensors["segments"], np.zeros((1, 6)))
    assert all(tensor.dtype == np.int64 for tensor in tensors.values())


def test_bytes_are_read_as_utf_8() -> None:
    np.testing.assert_array_equal(wordpiece()(b"cat")["input_ids"], wordpiece()("cat")["input_ids"])


def test_a_long_text_is_cut_with_its_end_token_kept() -> None:
    ids = wordpiece(max_tokens=5)("cat " * 50)["input_ids"]
    np.testing.assert_array_equal(ids, [[1, 6, 6, 6, 2]])


@pytest.mark.parametrize(
    ("raw", "error"),
    [("", BadInput), (" \n\t", BadInput), (b"\xff", BadInput), (7, BadInput),
     ("x" * (MAX_CHARACTERS + 1), TooLarge)],
)  # fmt: skip
def test_what_is_no_text_is_refused(raw: object, error: type[BadInput]) -> None:
    with pytest.raises(error):
        wordpiece()(raw)


@pytest.mark.parametrize("asset", [b"", b"{}", b"\xff\xfe", b"[1, 2"])
def test_an_asset_that_is_no_tokenizer_is_refused(asset: bytes) -> None:
    spec = PreprocessSpec("wordpiece", (), (("tokenizer", ASSET),))
    with pytest.raises(BadInput, match="tokenizers JSON"):
        make_wordpiece(spec, lambda _: asset)


def test_a_missing_tokenizer_is_named() -> None:
    with pytest.raises(NotFound, match="tokenizer"):
        make_wordpiece(PreprocessSpec("wordpiece"), lambda _: b"")
