from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from services.preprocess import make_preprocessor
from tests.services.preprocess.samples import picture, recording, tone
from validators.contracts.digest import Digest
from validators.contracts.encoder import PreprocessSpec
from validators.contracts.errors import BadInput, Unsupported

Options = tuple[tuple[str, str | int | float | bool], ...]


def no_asset(digest: Digest) -> bytes:
    raise AssertionError(f"{digest} was read")


@pytest.mark.parametrize(
    ("kind", "options", "raw", "tensor", "shape"),
    [
        ("image", (("size", 32),), picture(), "pixels", (1, 3, 32, 32)),
        ("log_mel", (("seconds", 2),), tone(), "mel", (1, 80, 200)),
        ("log_mel", (("seconds", 2),), recording(tone()), "mel", (1, 80, 200)),
        ("tensor", (("tensor", "x"),), np.ones((1, 4), np.float32), "x", (1, 4)),
    ],
)
def test_each_kind_makes_a_batch_of_one_that_is_the_same_every_time(
    kind: str, options: Options, raw: Any, tensor: str, shape: tuple[int, ...]
) -> None:
    preprocess = make_preprocessor(PreprocessSpec(kind, options), no_asset)
    first, second = preprocess(raw), preprocess(raw)
    assert first[tensor].shape == shape
    assert first[tensor].tobytes() == second[tensor].tobytes()


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Unsupported, match="image, wordpiece, log_mel"):
        make_preprocessor(PreprocessSpec("spectrogram"), no_asset)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("image", (("sise", 224),)),
        ("image", (("size", 0),)),
        ("image", (("size", "224"),)),
        ("image", (("size", True),)),
        ("image", (("fit", "fill"),)),
        ("image", (("resample", "nearest"),)),
        ("image", (("scale", 0),)),
        ("image", (("mean", "1, 2"),)),
        ("image", (("mean", "red"),)),
        ("image", (("mean", True),)),
        ("log_mel", (("seconds", 31),)),
        ("log_mel", (("longer", "fold"),)),
        ("tensor", (("dtype", "STRING"),)),
    ],
)
def test_an_option_that_is_unknown_or_wrong_is_refused_by_name(kind: str, options: Options) -> None:
    with pytest.raises(BadInput) as refusal:
        make_preprocessor(PreprocessSpec(kind, options), no_asset)
    assert options[0][0] in str(refusal.value)
