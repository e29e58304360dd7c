"""Real image networks that were trained on another input than their contract says."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from services.compatibility.compare import EncoderVersion, Feeds
from services.compatibility.conventions import (
    STANDARDISATIONS,
    declared_standardisation,
    restandardise,
)
from services.compatibility.counterfactuals import check_inputs
from services.preprocess import make_preprocessor
from tests.services.compatibility.engines import CONTRACT, FunctionEngine
from validators.compatibility.preprocessing import judge_inputs
from validators.contracts.encoder import PreprocessSpec
from validators.contracts.ports import Tensors
from validators.contracts.tensors import DType, Meaning, TensorSpec
from validators.contracts.verdict import Outcome

encoders = pytest.importorskip("flows.examples.storefront.encoders")
data = pytest.importorskip("flows.examples.storefront.data")
packages = pytest.importorskip("flows.examples.storefront.packages")

pytestmark = pytest.mark.heavy

Array = npt.NDArray[Any]
Change = Callable[[Array], Array]
IMAGENET = next(item for item in STANDARDISATIONS if item.name.startswith("ImageNet mean and"))


def preprocessing(size: int) -> PreprocessSpec:
    options = (("mean", 127), ("scale", 128), ("size", size), ("tensor", "pixels"))
    return PreprocessSpec("image", options)


@pytest.fixture(scope="module")
def pictures() -> list[bytes]:
    """The 24 photographs of the reference service."""
    with data.TABLE.open(encoding="utf-8", newline="") as table:
        return [
            packages.package_file(row["package"], *row["path"].split("/")).read_bytes()
            for row in csv.DictReader(table)
        ]


def version(module: torch.nn.Module, size: int, expects: Change = lambda x: x) -> EncoderVersion:
    def run(feeds: Tensors) -> Mapping[str, Array]:
        pixels = np.ascontiguousarray(expects(feeds["pixels"]), np.float32)
        with torch.inference_mode():
            features, logits = module(torch.from_numpy(pixels))
        return {"features": features.numpy(), "logits": logits.numpy()}

    contract = replace(
        CONTRACT,
        inputs=(TensorSpec("pixels", DType.FP32, ("batch", 3, size, size), Meaning.PIXELS),),
        outputs=(
            TensorSpec("features", DType.FP32, ("batch", 1280), Meaning.GLOBAL_EMBEDDING),
            TensorSpec("logits", DType.FP32, ("batch", 1000), Meaning.LOGITS),
        ),
        preprocess=preprocessing(size),
    )
    return EncoderVersion(contract, FunctionEngine(run))


def feeds(pictures: list[bytes], old_size: int, new_size: int) -> list[Feeds]:
    old, new = (make_preprocessor(preprocessing(s), lambda _: b"") for s in (old_size, new_size))
    return [(old(item), new(item)) for item in pictures]


def trained_on_imagenet(pixels: Array) -> Array:
    declared = declared_standardisation(CONTRACT.inputs[0], preprocessing(224))
    return restandardise(pixels, IMAGENET, declared)


@pytest.mark.parametrize(
    ("expects", "named"),
    [
        (lambda pixels: pixels[:, ::-1], "its channels in reverse order (RGB ↔ BGR)"),
        (trained_on_imagenet, "pixels standardised as ImageNet mean and standard deviation"),
    ],
)
def test_swapped_channels_and_another_mean_are_named_and_block(
    pictures: list[bytes], expects: Change, named: str
) -> None:
    torch.set_num_threads(1)
    network = encoders.efficientnet_lite0()
    check = check_inputs(
        version(network, 224), version(network, 224, expects), feeds(pictures, 224, 224)
    )
    (finding,) = judge_inputs(check)
    assert finding.code == "wrong-preprocessing" and finding.outcome is Outcome.FAIL
    assert f"expect {named}: agreement" in str(finding.measured)


def test_an_old_version_with_swapped_channels_stops_until_somebody_says_which(
    pictures: list[bytes],
) -> None:
    torch.set_num_threads(1)
    network = encoders.efficientnet_lite0()
    old = version(network, 224, lambda pixels: pixels[:, ::-1])
    (finding,) = judge_inputs(check_inputs(old, version(network, 224), feeds(pictures, 224, 224)))
    assert finding.waivable and finding.outcome >= Outcome.INCONCLUSIVE
    assert "one of the two versions is fed wrongly" in str(finding.measured)


@pytest.mark.parametrize("seed", range(3))
def test_the_next_network_is_not_accused_whatever_pictures_are_drawn(
    pictures: list[bytes], seed: int
) -> None:
    torch.set_num_threads(1)
    drawn = np.random.default_rng(seed).permutation(len(pictures))[:18]
    items = feeds([pictures[at] for at in drawn], 224, 240)
    lite0, lite1 = encoders.efficientnet_lite0(), encoders.efficientnet_lite1()
    assert judge_inputs(check_inputs(version(lite0, 224), version(lite1, 240), items)) == []
