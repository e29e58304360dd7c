"""The shape of an encoder in the user's file: source, tensors, preprocessing, profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from validators.contracts.pipeline_keys import (
    FACTORY,
    LISTED,
    MAPPED,
    ONE,
    VERSION,
    Dim,
    Modal,
    Name,
    Scalar,
    Section,
    Size,
    TensorName,
    Text,
    key,
    section,
)


class SourceSection(Section):
    """Where the model comes from: exactly one of the two."""

    onnx: Text | None = key("An ONNX file, relative to this file.", None)
    torch: str | None = key(
        "package.module:function that takes nothing and returns a torch module in eval mode.",
        None, pattern=FACTORY,
    )  # fmt: skip


class TimeBaseSection(Section):
    """The rate of a time dimension: index i stands at offset_ms + 1000 * i / rate_hz."""

    dim: str = key("The dimension of the shape that counts time.")
    rate_hz: float = key("Steps a second.", unit="Hz", gt=0)
    offset_ms: float = key("When index 0 stands.", 0.0, unit="ms")


class TensorSection(Section):
    """One tensor of an encoder's contract."""

    name: TensorName = key("Name in the model's graph.")
    dtype: Literal[
        "BOOL", "UINT8", "INT8", "INT32", "INT64", "FP16", "BF16", "FP32", "FP64", "BYTES"
    ] = key("Datatype of the Open Inference Protocol.")
    shape: list[Dim] = key(
        "Each dimension a size, or a name that has one value within a request.", max_length=16
    )
    meaning: Literal[
        "pixels", "mel", "waveform", "token_ids", "attention_mask", "patch_features",
        "frame_features", "token_features", "global_embedding", "logits", "scores", "cache",
    ] = key("What the numbers stand for.")  # fmt: skip
    space: Name | None = key("The embedding space of a global_embedding.", None)
    range: list[float] | None = key(
        "Lowest and highest value after preprocessing.", None, min_length=2, max_length=2
    )
    time_base: TimeBaseSection | None = key("The rate of a time dimension.", None)


class PreprocessSection(Section):
    """How raw input becomes the encoder's tensors."""

    kind: Literal["image", "wordpiece", "log_mel", "tensor", "transcript"] = key(
        "The preprocessor; tensor passes arrays through, checked, and transcript says how a "
        "decoder's tokens become text.",
        "tensor",
    )
    options: dict[TensorName, Scalar] = key("Settings of that preprocessor.", {})
    assets: dict[Name, Text] = key(
        "Files it needs: name to a path relative to this file, or package:relative/path.", {}
    )


class RangeSection(Section):
    """Shapes of one input tensor that a profile covers, inclusive; min <= opt <= max."""

    min: list[Size] = key("Smallest shape.")
    opt: list[Size] = key("The shape that the engine is tuned for.")
    max: list[Size] = key("Largest shape.")


Ranges = dict[TensorName, RangeSection]
"""Every input tensor with its range."""


class AutoSection(Section):
    """How many profiles may be planned, and what they may hold."""

    count: int = key("Most profiles.", 4, ge=1, le=32)
    memory_mb: int | None = key(
        "Most memory of the tensors of all profiles together, at their largest shapes; no bound "
        "where it is left out.",
        None, unit="MB", gt=0,
    )  # fmt: skip


class PlannedProfilesSection(Section):
    """Profiles planned from the shapes that serving recorded, or else those of the data."""

    auto: AutoSection = section("How many, and how large together.", AutoSection)
    bounds: Ranges | None = key(
        "Every input tensor with its range: nothing outside is served. Left out, the fixed sizes, "
        "with a dimension called batch from 1 to 8.",
        None,
    )


def _reading_of_precision(value: object) -> str:
    return LISTED if isinstance(value, list) else ONE


def _reading_of_profiles(value: object) -> str:
    if isinstance(value, Mapping | PlannedProfilesSection):
        return MAPPED
    return ONE if isinstance(value, str) else LISTED


Candidates = Annotated[
    Annotated[Literal["fp32", "fp16", "bf16", "int8", "int4", "auto"], Tag(ONE)]
    | Annotated[list[Modal], Field(min_length=1, max_length=5), Tag(LISTED)],
    Discriminator(_reading_of_precision),
]
Profiles = Annotated[
    Annotated[list[Ranges], Field(min_length=1, max_length=16), Tag(LISTED)]
    | Annotated[PlannedProfilesSection, Tag(MAPPED)]
    | Annotated[Literal["auto"], Tag(ONE)],
    Discriminator(_reading_of_profiles),
]


class EncoderSection(Section):
    """One encoder version and the contract it keeps."""

    version: str = key("Version, as text: 1.0.0.", pattern=VERSION)
    modality: Name = key("The modality it reads.")
    source: SourceSection = key("Where the model comes from.")
    licence: str = key("Licence of the weights, as an SPDX name where there is one.", "")
    inputs: list[TensorSection] = key("Tensors it takes, in order.", min_length=1, max_length=64)
    outputs: list[TensorSection] = key("Tensors it gives, in order.", min_length=1, max_length=64)
    preprocess: PreprocessSection = section("From raw input to tensors.", PreprocessSection)
    state: Literal["stateless", "autoregressive_cache", "cross_modal_cache"] = key(
        "What it remembers between calls.", "stateless"
    )
    precision: Candidates = key(
        "Precision of its engines, unless a backend says otherwise. A list is measured, and the "
        "fastest that passes parity is taken; auto stands for fp32, bf16, fp16, int8 and int4.",
        "fp32",
    )
    profiles: Profiles | None = key(
        "Shape ranges to compile for, a mapping of every input tensor to its range; or bounds that "
        "profiles are planned within, auto for the bounds that are taken where nothing is written: "
        "the fixed sizes, with a dimension called batch from 1 to 8.",
        None,
    )
    outside: list[Literal["pad", "split", "cut"]] = key(
        "What may be done with a shape that no profile covers: pad raises a size into a profile, "
        "split runs a batch in parts, cut drops the end of what is too long, and the answer says "
        "so. Anything else is refused.",
        ["pad", "split"], max_length=3,
    )  # fmt: skip
