from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from services.compatibility.conventions import STANDARDISATIONS, restandardise
from services.compatibility.preprocessing import compare_inputs
from tests.services.compatibility.engines import CONTRACT
from tests.services.compatibility.small_pictures import PICTURES, pictures
from tests.services.compatibility.test_counterfactuals import DECLARED, IMAGENET
from validators.compatibility.preprocessing import judge_tensors
from validators.contracts.tensors import DType, Meaning, TensorSpec
from validators.contracts.verdict import Outcome

Array = npt.NDArray[Any]
ITEMS = pictures(20)


def imagenet(pixels: Array) -> Array:
    return restandardise(pixels, DECLARED, IMAGENET)


def resized(pixels: Array) -> Array:
    planes = [np.asarray(Image.fromarray(plane).resize((20, 20))) for plane in pixels[0]]
    return np.stack(planes)[None]


@pytest.mark.parametrize(
    ("change", "codes", "words"),
    [
        (lambda x: x, [], []),
        (lambda x: x[:, ::-1], ["channels"], ["RGB ↔ BGR"]),
        (lambda x: x[:, [1, 2, 0]], ["channels"], ["(1, 2, 0)"]),
        (imagenet, ["standardised"], ["ImageNet mean and standard deviation against"]),
        (
            lambda x: imagenet(x)[:, ::-1],
            ["channels", "standardised"],
            ["RGB ↔ BGR", "ImageNet mean and standard deviation against"],
        ),
        (lambda x: 128 * x + 127, ["standardised"], ["0 to 255 against"]),
        (lambda x: 3 * x + 1, ["standardised"], ["mean 84.33, 84.33, 84.33, scale 42.67"]),
        (lambda x: x.transpose(0, 2, 3, 1), ["layout"], ["NHWC"]),
        (resized, ["size"], ["16x16 and 20x20"]),
        (lambda x: np.roll(x, 5, axis=3), ["fit"], ["cropped or resized"]),
    ],
)
def test_differences_between_pictures_are_named(
    change: Callable[[Array], Array], codes: list[str], words: list[str]
) -> None:
    feeds = [({"pixels": item}, {"pixels": change(item)}) for item in ITEMS]
    found = compare_inputs(PICTURES, PICTURES, feeds)
    assert [item.code for item in found] == codes
    assert all(word in item.says for word, item in zip(words, found, strict=True))
    findings = judge_tensors("image", found)
    assert all(item.outcome is Outcome.WARN for item in findings)


@pytest.mark.parametrize("other", STANDARDISATIONS, ids=lambda item: item.name)
def test_every_convention_is_recognised(other: Any) -> None:
    feeds = [({"pixels": item}, {"pixels": restandardise(item, DECLARED, other)}) for item in ITEMS]
    found = compare_inputs(PICTURES, PICTURES, feeds)
    near = other.name in ("(x - 127.5) / 127.5", "(x - 127) / 128")  # what is declared
    assert [other.name in item.says for item in found] == ([] if near else [True])


def test_grey_pictures_say_nothing_of_their_channels() -> None:
    grey = [item[:, :1].repeat(3, axis=1) for item in ITEMS]
    feeds = [({"pixels": item}, {"pixels": item[:, ::-1]}) for item in grey]
    assert compare_inputs(PICTURES, PICTURES, feeds) == ()


def sounds(meaning: Meaning, shape: tuple[int | str, ...], name: str) -> Any:
    return replace(CONTRACT, inputs=(TensorSpec(name, DType.FP32, shape, meaning),))


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        (lambda x: x, []),
        (lambda x: 32768 * x, ["gain"]),
        (lambda x: x + 3, ["gain"]),
        (lambda x: x[:, ::2], ["rate"]),
    ],
)
def test_differences_between_sounds_are_named(
    change: Callable[[Array], Array], codes: list[str]
) -> None:
    contract = sounds(Meaning.WAVEFORM, ("batch", "time"), "samples")
    rows = np.random.default_rng(0).uniform(-1, 1, (6, 1, 400)).astype(np.float32)
    feeds = [({"samples": row}, {"samples": change(row)}) for row in rows]
    assert [item.code for item in compare_inputs(contract, contract, feeds)] == codes


def test_another_number_of_mel_bands_is_named() -> None:
    contract = sounds(Meaning.MEL, (1, "bands", 50), "mel")
    rows = np.random.default_rng(0).uniform(0, 1, (6, 1, 80, 50))
    feeds = [({"mel": row}, {"mel": row[:, :64]}) for row in rows]
    assert [item.code for item in compare_inputs(contract, contract, feeds)] == ["bands"]


TEXTS = [[7, 8, 9], [10, 11], [12, 13, 14, 15, 16, 17], [18, 19]]


@pytest.mark.parametrize(
    ("after", "lowered", "codes"),
    [
        ([[1, *row, 2] for row in TEXTS], [], []),
        (TEXTS, [], ["special-tokens"]),
        ([[1, 1, *row, 2, 2] for row in TEXTS], [], ["special-tokens"]),
        ([[1, *row[:1], 2] for row in TEXTS], [], ["length"]),
        ([[1, *(n + 50 for n in row), 2] for row in TEXTS],
         [[1, *(n + 50 for n in row), 2] for row in TEXTS], ["case"]),
        ([[1, *(n + 50 for n in row), 2] for row in TEXTS], [], ["tokens"]),
    ],
)  # fmt: skip
def test_differences_between_token_ids_are_named(
    after: list[list[int]], lowered: list[list[int]], codes: list[str]
) -> None:
    spec = TensorSpec("ids", DType.INT64, ("batch", "tokens"), Meaning.TOKEN_IDS)
    contract = replace(CONTRACT, inputs=(spec,))
    feeds = [
        ({"ids": np.array([[1, *before, 2]])}, {"ids": np.array([ids])})
        for before, ids in zip(TEXTS, after, strict=True)
    ]
    low = [{"ids": np.array([ids])} for ids in lowered]
    assert [i.code for i in compare_inputs(contract, contract, feeds, lowered=low)] == codes


def test_no_items_and_other_tensors_give_no_difference() -> None:
    assert compare_inputs(PICTURES, PICTURES, []) == ()
    other = replace(PICTURES, inputs=(replace(PICTURES.inputs[0], name="image"),))
    assert compare_inputs(PICTURES, other, [({"pixels": ITEMS[0]}, {"image": ITEMS[0]})]) == ()
