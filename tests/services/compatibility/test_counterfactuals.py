from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from services.compatibility.compare import EncoderVersion
from services.compatibility.conventions import (
    STANDARDISATIONS,
    are_alike,
    counterfactuals_of,
    declared_standardisation,
    restandardise,
)
from services.compatibility.counterfactuals import check_inputs
from tests.services.compatibility.engines import CONTRACT, FunctionEngine
from tests.services.compatibility.small_pictures import PICTURES, network, pictures, version
from validators.compatibility.preprocessing import describe_inputs, judge_inputs
from validators.contracts.encoder import PreprocessSpec
from validators.contracts.errors import BadInput
from validators.contracts.ports import Tensors
from validators.contracts.tensors import DType, Meaning, TensorSpec
from validators.contracts.verdict import Outcome

Array = npt.NDArray[Any]
ITEMS = pictures(40)
FEEDS: list[tuple[Tensors, Tensors]] = [({"pixels": item}, {"pixels": item}) for item in ITEMS]
DECLARED = declared_standardisation(PICTURES.inputs[0], PICTURES.preprocess)
BY_NAME = {item.name: item for item in STANDARDISATIONS}
IMAGENET = BY_NAME["ImageNet mean and standard deviation"]


def undone(name: str) -> Callable[[Array], Array]:
    """What makes pixels standardised as `name` into what the small network was made for."""
    return lambda pixels: restandardise(pixels, BY_NAME[name], DECLARED)


def reverse(pixels: Array) -> Array:
    return pixels[:, ::-1]


@pytest.mark.parametrize(
    ("wants", "code"),
    [
        (reverse, "channels-reversed"),
        (undone("0 to 255"), "standardised 0 to 255"),
        (undone("0 to 1"), "standardised 0 to 1"),
        (undone(IMAGENET.name), f"standardised {IMAGENET.name}"),
        (
            lambda pixels: undone(IMAGENET.name)(pixels)[:, ::-1],
            f"channels-reversed, standardised {IMAGENET.name}",
        ),
        (
            lambda pixels: pixels.reshape(-1, 16, 16, 3).transpose(0, 3, 1, 2),
            "memory-channels-last",
        ),
        (lambda pixels: pixels.swapaxes(2, 3), "height-width-swapped"),
    ],
)
def test_what_the_weights_expect_beyond_the_contract_is_named(
    wants: Callable[[Array], Array], code: str
) -> None:
    old, new = version("1", network(0)), version("2", network(0), wants)
    check = check_inputs(old, new, FEEDS)
    best = max(check.changed, key=lambda item: item.agreement.value)
    assert best.code == code and best.agreement.value == 1
    (finding,) = judge_inputs(check)
    assert finding.code in ("wrong-preprocessing", "old-preprocessing-wrong")
    assert finding.outcome is (
        Outcome.FAIL if finding.code == "wrong-preprocessing" else Outcome.INCONCLUSIVE
    )


@pytest.mark.parametrize("seed", range(24))
def test_a_swapped_new_version_never_passes_whatever_its_random_classes_say(seed: int) -> None:
    old, new = version("1", network(seed)), version("2", network(seed), reverse)
    (finding,) = judge_inputs(check_inputs(old, new, FEEDS))
    assert finding.outcome >= Outcome.INCONCLUSIVE and "reverse order" in str(finding.measured)


@pytest.mark.parametrize("seed", range(4))
def test_vectors_name_a_standardisation_that_neighbours_and_classes_do_not_show(seed: int) -> None:
    """A large offset common to all items: who is near whom stays, where they are does not."""
    drawn = np.random.default_rng(seed)
    weights, mark = drawn.standard_normal((48, 24)), 12 * drawn.standard_normal(24)

    def linear(pixels: Array) -> Array:
        fields = pixels.reshape(len(pixels), 3, 4, 4, 4, 4).mean(axis=(3, 5)).reshape(-1, 48)
        return fields @ weights + mark

    old, new = version("1", linear), version("2", linear, undone(IMAGENET.name))
    check = check_inputs(old, new, FEEDS)
    best = next(item for item in check.changed if item.code == f"standardised {IMAGENET.name}")
    assert check.vectors is not None and best.vectors is not None and best.gain.low < 0.05
    assert check.vectors.value < best.vectors.value == pytest.approx(1)
    (finding,) = judge_inputs(check)
    assert IMAGENET.name in str(finding.measured) and finding.outcome >= Outcome.INCONCLUSIVE


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("noise", [0.2, 0.5, 1.0])
def test_versions_that_are_fed_rightly_are_not_accused(seed: int, noise: float) -> None:
    items: list[tuple[Tensors, Tensors]] = [
        ({"pixels": item}, {"pixels": item}) for item in pictures(30, seed)
    ]
    old, new = version("1", network(seed)), version("2", network(seed, noise, seed + 1))
    check = check_inputs(old, new, items)
    assert judge_inputs(check) == []
    assert describe_inputs(check)


@pytest.mark.parametrize("seed", range(8))
def test_another_network_altogether_is_not_accused(seed: int) -> None:
    check = check_inputs(version("1", network(seed)), version("2", network(seed + 100)), FEEDS)
    assert judge_inputs(check) == []
    assert "no known convention explains it" in describe_inputs(check)


def test_versions_that_agree_are_run_once() -> None:
    calls = 0

    def counted(pixels: Array) -> Array:
        nonlocal calls
        calls += 1
        return network(0)(pixels)

    check = check_inputs(version("1", network(0)), version("2", counted), FEEDS)
    assert (calls, check.changed) == (len(FEEDS), ())
    assert "agree as they are fed" in describe_inputs(check)


def test_a_handful_of_items_accuses_nobody() -> None:
    check = check_inputs(version("1", network(0)), version("2", network(0), reverse), FEEDS[:8])
    assert judge_inputs(check) == [] and "too few" in describe_inputs(check)


def test_numbers_that_are_not_finite_are_left_to_the_other_rules() -> None:
    def broken(pixels: Array) -> Array:
        return np.full((len(pixels), 24), np.nan)

    check = check_inputs(version("1", network(0)), version("2", broken), FEEDS)
    assert check.declared.count == 0 and judge_inputs(check) == []


def test_what_an_engine_refuses_is_no_candidate() -> None:
    def narrow(pixels: Array) -> Array:
        if np.abs(pixels).max() > 100:
            raise BadInput("out of bounds")
        return network(0)(pixels)

    check = check_inputs(version("1", network(0)), version("2", narrow, reverse), FEEDS)
    codes = [item.code for item in check.changed]
    assert "channels-reversed" in codes and "standardised 0 to 255" not in codes


def test_the_declared_standardisation_comes_from_the_contract() -> None:
    spec = replace(PICTURES.inputs[0], value_range=(-1.0, 1.0))
    assert DECLARED.mean == (127, 127, 127) and DECLARED.scale == (128, 128, 128)
    listed = PreprocessSpec("image", (("mean", "1, 2, 3"), ("scale", "4,5,6")))
    assert declared_standardisation(spec, listed).mean == (1, 2, 3)
    by_range = declared_standardisation(spec, PreprocessSpec("tensor"))
    assert are_alike(by_range, BY_NAME["(x - 127.5) / 127.5"])
    unit = declared_standardisation(replace(spec, value_range=None), PreprocessSpec("tensor"))
    assert are_alike(unit, BY_NAME["0 to 1"])


def test_standardisations_go_there_and_back() -> None:
    for other in STANDARDISATIONS:
        there = restandardise(ITEMS[0].astype(np.float64), DECLARED, other)
        assert restandardise(there, other, DECLARED) == pytest.approx(ITEMS[0], abs=1e-9)


@pytest.mark.parametrize(
    ("spec", "codes"),
    [
        (TensorSpec("mel", DType.FP32, (1, 80, 800), Meaning.MEL),
         ["mel-log10", "mel-natural-log", "mel-decibel"]),
        (TensorSpec("samples", DType.FP32, ("batch", "time"), Meaning.WAVEFORM),
         ["waveform-16-bit", "waveform-unit"]),
        (TensorSpec("ids", DType.INT64, ("batch", "tokens"), Meaning.TOKEN_IDS),
         ["special-tokens-missing"]),
        (TensorSpec("depth", DType.FP32, ("batch", 1, 8, 8), Meaning.PIXELS), []),
    ],
)  # fmt: skip
def test_every_kind_of_input_has_its_ways(spec: TensorSpec, codes: list[str]) -> None:
    contract = replace(CONTRACT, inputs=(spec,))
    assert [item.code for item in counterfactuals_of(contract)] == codes


def test_missing_special_tokens_are_named_and_the_mask_follows() -> None:
    ids = TensorSpec("ids", DType.INT64, ("batch", "tokens"), Meaning.TOKEN_IDS)
    mask = TensorSpec("mask", DType.INT64, ("batch", "tokens"), Meaning.ATTENTION_MASK)
    contract = replace(CONTRACT, inputs=(ids, mask), outputs=CONTRACT.outputs[:1])
    random = np.random.default_rng(0)
    table = random.standard_normal((50, 8))
    table[:2] *= 4  # special tokens weigh heavily where they were not trained in

    def run(feeds: Tensors) -> dict[str, Array]:
        assert feeds["ids"].shape == feeds["mask"].shape
        return {"features": table[feeds["ids"]].mean(axis=1)}

    def trimmed(feeds: Tensors) -> dict[str, Array]:
        """The old version, which was given texts without special tokens."""
        return run({name: value[:, 1:-1] for name, value in feeds.items()})

    feeds: list[tuple[Tensors, Tensors]] = []
    for length in random.integers(3, 12, 40).tolist():
        tokens = np.array([[0, *random.integers(2, 50, length).tolist(), 1]])
        item = {"ids": tokens, "mask": np.ones_like(tokens)}
        feeds.append((item, item))
    old = EncoderVersion(contract, FunctionEngine(trimmed))
    new = EncoderVersion(replace(contract, version="2"), FunctionEngine(run))
    (finding,) = judge_inputs(check_inputs(old, new, feeds))
    assert "special tokens" in str(finding.measured)
