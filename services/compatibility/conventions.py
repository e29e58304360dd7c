"""The ways in which models are known to want their input, as changes to a tensor that is ready.

Each is what a preprocessing with one mistake would have made: channels in reverse order, another
mean and standard deviation, memory laid out the other way round, special tokens left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from validators.contracts.encoder import EncoderContract, PreprocessSpec
from validators.contracts.tensors import Meaning, TensorSpec

Array = npt.NDArray[Any]

REVERSED = "channels-reversed"


@dataclass(frozen=True, slots=True)
class Standardisation:
    """(pixel - mean) / scale per channel, in red, green, blue order, pixels within 0..255."""

    name: str
    mean: tuple[float, float, float]
    scale: tuple[float, float, float]

    def arrays(self) -> tuple[Array, Array]:
        """Mean and scale as [3, 1, 1]."""
        mean, scale = (np.array(item, np.float64).reshape(3, 1, 1)
                       for item in (self.mean, self.scale))  # fmt: skip
        return mean, scale


def _same(name: str, mean: float, scale: float) -> Standardisation:
    return Standardisation(name, (mean,) * 3, (scale,) * 3)


STANDARDISATIONS: tuple[Standardisation, ...] = (
    _same("0 to 255", 0.0, 1.0),
    _same("0 to 1", 0.0, 255.0),
    _same("(x - 127.5) / 127.5", 127.5, 127.5),
    _same("(x - 127) / 128", 127.0, 128.0),
    Standardisation(
        "ImageNet mean and standard deviation",
        (123.675, 116.28, 103.53),
        (58.395, 57.12, 57.375),
    ),
    Standardisation(
        "CLIP mean and standard deviation",
        (122.7709, 116.7460, 104.0937),
        (68.5005, 66.6322, 70.3232),
    ),
    Standardisation("ImageNet mean alone", (123.68, 116.779, 103.939), (1.0, 1.0, 1.0)),
)
"""torchvision's, TensorFlow's, EfficientNet-Lite's, OpenAI's and Caffe's (VGG) conventions."""

ALIKE = 0.03
"""Of a standardisation's own span: two that differ less than this are not told apart."""


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """One way the input could have been meant. `change` gives another array of the same shape."""

    code: str  # stable: "channels-reversed"
    says: str  # a clause about what the weights expect
    remedy: str
    tensor: str
    change: Callable[[Array], Array]


def counterfactuals_of(contract: EncoderContract) -> tuple[Counterfactual, ...]:
    """Every known way that could apply to the contract's inputs; none where none does."""
    found = list[Counterfactual]()
    for spec in contract.inputs:
        if spec.meaning is Meaning.PIXELS and len(spec.shape) == 4 and spec.shape[1] == 3:
            found += _of_pixels(spec, contract.preprocess)
        elif spec.meaning is Meaning.MEL and len(spec.shape) == 3:
            found += _of_mel(spec)
        elif spec.meaning is Meaning.WAVEFORM:
            found += _of_waveform(spec)
    return (*found, *_of_tokens(contract))


def declared_standardisation(spec: TensorSpec, preprocess: PreprocessSpec) -> Standardisation:
    """What the contract says of pixels: by its preprocessing, else by the tensor's range."""
    options = dict(preprocess.options)
    if preprocess.kind == "image" and options.get("tensor", "pixels") == spec.name:
        mean, scale = _three(options.get("mean", 0.0)), _three(options.get("scale", 255.0))
        return Standardisation("as declared", mean, scale)
    low, high = spec.value_range or (0.0, 1.0)
    scale_of_range = 255.0 / max(high - low, 1e-6)
    return _same("as declared", -low * scale_of_range, scale_of_range)


def restandardise(pixels: Array, before: Standardisation, after: Standardisation) -> Array:
    """[.., 3, H, W] as the other standardisation would have made it."""
    (old_mean, old_scale), (mean, scale) = before.arrays(), after.arrays()
    return np.asarray((pixels * old_scale + old_mean - mean) / scale, pixels.dtype)


def are_alike(first: Standardisation, second: Standardisation) -> bool:
    """Whether their values over 0..255 lie within ALIKE of the first one's span."""
    ends = [
        np.abs(restandardise(_ends(first), first, second) - _ends(first)).max(axis=(1, 2)),
    ]
    return bool((ends[0] <= ALIKE * 255.0 / np.array(first.scale)).all())


def _ends(of: Standardisation) -> Array:
    mean, scale = of.arrays()
    return np.asarray((np.array([[[0.0, 255.0]]] * 3) - mean) / scale)


def _of_pixels(spec: TensorSpec, preprocess: PreprocessSpec) -> Iterator[Counterfactual]:
    reverse, declared = _reverse, declared_standardisation(spec, preprocess)
    yield Counterfactual(
        REVERSED, "its channels in reverse order (RGB ↔ BGR)",
        "Reverse the channels in the preprocessing, or swap the first layer's input weights.",
        spec.name, reverse,
    )  # fmt: skip
    for other in STANDARDISATIONS:
        if are_alike(declared, other):
            continue
        changed = _restandardised(declared, other)
        says = f"pixels standardised as {other.name}"
        yield Counterfactual(
            f"standardised {other.name}", says,
            f"Declare the mean and scale of {other.name} in the preprocessing.", spec.name, changed,
        )  # fmt: skip
        yield Counterfactual(
            f"{REVERSED}, standardised {other.name}",
            f"{says}, and its channels in reverse order (RGB ↔ BGR)",
            f"Declare the mean and scale of {other.name}, and reverse the channels.",
            spec.name, _chain(reverse, changed),
        )  # fmt: skip
    yield Counterfactual(
        "memory-channels-last", "its memory laid out with the channels last (NHWC)",
        "Transpose the picture to channels last before it goes to the encoder.",
        spec.name, _channels_last,
    )  # fmt: skip
    if spec.shape[2] == spec.shape[3]:
        yield Counterfactual(
            "height-width-swapped", "height and width swapped",
            "Transpose height and width in the preprocessing.", spec.name, _swap_sides,
        )  # fmt: skip


def _of_mel(spec: TensorSpec) -> Iterator[Counterfactual]:
    """Whisper's log-mel is (log10 + 4) / 4; others take the logarithm itself, or decibels."""
    for code, says, factor in (
        ("log10", "log10 mel energies", 1.0),
        ("natural-log", "natural logarithms of mel energies", float(np.log(10.0))),
        ("decibel", "mel energies in decibels", 10.0),
    ):
        yield Counterfactual(
            f"mel-{code}", says, f"Give the encoder {says}, without Whisper's (x + 4) / 4.",
            spec.name, _scaled_mel(factor),
        )  # fmt: skip


def _of_waveform(spec: TensorSpec) -> Iterator[Counterfactual]:
    yield Counterfactual(
        "waveform-16-bit", "samples as 16-bit whole numbers, not -1 to 1",
        "Multiply the samples by 32768 in the preprocessing.", spec.name, _times(32768.0),
    )  # fmt: skip
    yield Counterfactual(
        "waveform-unit", "samples within -1 to 1, not 16-bit whole numbers",
        "Divide the samples by 32768 in the preprocessing.", spec.name, _times(1 / 32768.0),
    )  # fmt: skip


def _of_tokens(contract: EncoderContract) -> Iterator[Counterfactual]:
    for spec in contract.inputs:
        if spec.meaning is Meaning.TOKEN_IDS and len(spec.shape) == 2:
            yield Counterfactual(
                "special-tokens-missing", "a text without special tokens at its ends",
                "Leave the special tokens out in the tokenizer file.", spec.name, _without_ends,
            )  # fmt: skip


def _reverse(pixels: Array) -> Array:
    return np.ascontiguousarray(pixels[:, ::-1])


def _channels_last(pixels: Array) -> Array:
    return np.ascontiguousarray(pixels.transpose(0, 2, 3, 1)).reshape(pixels.shape)


def _swap_sides(pixels: Array) -> Array:
    return np.ascontiguousarray(pixels.swapaxes(2, 3))


def _without_ends(ids: Array) -> Array:
    """Shorter by two, where that leaves anything; masks follow (see `counterfactuals`)."""
    return np.ascontiguousarray(ids[:, 1:-1]) if ids.shape[1] > 2 else ids


def _restandardised(before: Standardisation, after: Standardisation) -> Callable[[Array], Array]:
    return lambda pixels: restandardise(pixels, before, after)


def _scaled_mel(factor: float) -> Callable[[Array], Array]:
    return lambda mel: np.asarray((mel * 4.0 - 4.0) * factor, mel.dtype)


def _times(factor: float) -> Callable[[Array], Array]:
    return lambda samples: np.asarray(samples * factor, samples.dtype)


def _chain(*steps: Callable[[Array], Array]) -> Callable[[Array], Array]:
    def change(values: Array) -> Array:
        for step in steps:
            values = step(values)
        return values

    return change


def _three(value: str | int | float | bool) -> tuple[float, float, float]:
    numbers = [float(part) for part in str(value).split(",")]
    red, green, blue = numbers if len(numbers) == 3 else numbers[:1] * 3
    return red, green, blue
