from __future__ import annotations

import numpy as np
import pytest

from services.preprocess.tensor import make_tensor
from validators.contracts.encoder import PreprocessSpec
from validators.contracts.errors import BadInput


@pytest.mark.parametrize(
    "raw",
    [
        b"bytes",
        np.ones((1, 4), np.float64),
        np.float32(1),
        np.ones((2, 4), np.float32),
        np.ones((1, 0), np.float32),
        np.ones((1, 11), np.float32),
        np.full((1, 4), np.inf, np.float32),
    ],
    ids=["bytes", "double", "scalar", "two items", "empty", "too many", "infinite"],
)
def test_a_tensor_that_does_not_keep_its_word_is_refused(raw: object) -> None:
    preprocess = make_tensor(PreprocessSpec("tensor", (("max_elements", 10),)), lambda _: b"")
    with pytest.raises(BadInput):
        preprocess(raw)


def test_a_sound_tensor_passes_unchanged() -> None:
    spec = PreprocessSpec("tensor", (("dtype", "INT64"), ("tensor", "tokens")))
    given = np.array([[3, 1, 2]], np.int64)
    np.testing.assert_array_equal(make_tensor(spec, lambda _: b"")(given)["tokens"], given)
