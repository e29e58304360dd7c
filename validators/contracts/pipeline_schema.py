"""The shape of the user's file: what a key is called, what it may hold, what it means.

The models here are the one source of the parser, of the JSON Schema that editors read and of the
reference page `docs/pipeline-file.md`. What concerns two keys at once is in `pipeline_rules`.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

NAME = r"^[a-z][a-z0-9_-]{0,62}$"
TENSOR = r"^[A-Za-z_][A-Za-z0-9_.:/-]{0,127}$"
SERVICE = r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$"
VERSION = r"^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$"
TARGET = r"^(host|SM[0-9]{2,3})$"
FINDING = r"^[^/\s]+/[^/\s]+/\S.*$"
DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
FACTORY = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"
FLOWS = (
    "release", "ingest", "deidentify", "build_engines", "compatibility", "drift_watch",
    "slo_watch", "rollout", "retention",
)  # fmt: skip
MAX_DIM = 2**31 - 1


def _dim(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_DIM:
        return value
    if isinstance(value, str) and value.isascii() and value.isidentifier():
        return value
    raise PydanticCustomError("dimension", "not a dimension")


def _scalar(value: object) -> object:
    if isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise PydanticCustomError("scalar", "not a scalar")


Dim = Annotated[
    int | str,
    BeforeValidator(_dim),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1},
                {"type": "string", "pattern": r"^[A-Za-z_][A-Za-z0-9_]*$"},
            ]
        }
    ),
]
Scalar = Annotated[
    str | int | float | bool,
    BeforeValidator(_scalar),
    WithJsonSchema({"type": ["string", "number", "integer", "boolean"]}),
]
Name = Annotated[str, Field(pattern=NAME)]
TensorName = Annotated[str, Field(pattern=TENSOR)]
Text = Annotated[str, Field(min_length=1, max_length=1024)]
Size = Annotated[int, Field(ge=1, le=MAX_DIM)]
Percent = Annotated[int, Field(ge=1, le=100, json_schema_extra={"x-unit": "percent"})]
Modal = Literal["fp32", "fp16", "bf16", "int8", "int4"]


def _key(description: str, default: Any = ..., *, unit: str | None = None, **limits: Any) -> Any:
    """A key of the file. `unit` is published as `x-unit`; "share" means 0 to 1."""
    if unit == "share":
        limits = {"ge": 0, "le": 1} | limits
    extra: JsonDict | None = {"x-unit": unit} if unit else None
    return Field(default, description=description, json_schema_extra=extra, **limits)


def _section(description: str, kind: type[BaseModel]) -> Any:
    return Field(default_factory=kind, description=description)


class Section(BaseModel):
    """A closed mapping: unknown keys are refused and nothing is converted."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, use_enum_values=True
    )


class SloSection(Section):
    """What the service promises, end to end, from arrival to the last byte."""

    slo_class: Literal["offline", "interactive", "edge"] = _key(
        "The class, with its own bounds: offline within 5000 ms, interactive P99 within 300 ms, "
        "edge P95 within 80 ms and two modalities at most.",
        "interactive", alias="class",
    )  # fmt: skip
    p99_ms: float | None = _key(
        "Declared 99th percentile of latency; the bound of the class where it is left out.",
        None, unit="ms", gt=0,
    )  # fmt: skip
    soft_limit_ms: float | None = _key(
        "After this the light answer is given; below p99_ms. Five sixths of p99_ms where left out.",
        None, unit="ms", gt=0,
    )  # fmt: skip
    peak_memory_mb: float = _key("Most resident memory of one replica.", 4096.0, unit="MB", gt=0)
    consistency: float = _key(
        "Least alignment score of matched pairs across modalities.", 0.25, unit="share"
    )
    error_rate: float = _key("Most requests that may fail.", 0.01, unit="share")


class ModalitySection(Section):
    """A kind of input. What is left out comes from the built-in modality of that name, if any."""

    period_ms: float | None = _key(
        "Time between samples; left out for what comes when it comes.", None, unit="ms", gt=0
    )
    jitter_ms: float | None = _key("Spread of the period.", None, unit="ms", ge=0)
    tolerance_ms: float | None = _key(
        "How late a sample may be and still be worth using; at least the jitter.",
        None, unit="ms", gt=0,
    )  # fmt: skip
    weight: float | None = _key("Base share in the scheduler.", None, gt=0)
    main: bool = _key("The channel that degradation protects; one at most.", False)


class DataSection(Section):
    """Labelled media to release with: exactly one of the two."""

    folder: Text | None = _key("A folder with manifest.jsonl, relative to this file.", None)
    factory: str | None = _key(
        "package.module:function that makes such a folder.", None, pattern=FACTORY
    )


class SourceSection(Section):
    """Where the model comes from: exactly one of the two."""

    onnx: Text | None = _key("An ONNX file, relative to this file.", None)
    torch: str | None = _key(
        "package.module:function that takes nothing and returns a torch module in eval mode.",
        None, pattern=FACTORY,
    )  # fmt: skip


class TimeBaseSection(Section):
    """The rate of a time dimension: index i stands at offset_ms + 1000 * i / rate_hz."""

    dim: str = _key("The dimension of the shape that counts time.")
    rate_hz: float = _key("Steps a second.", unit="Hz", gt=0)
    offset_ms: float = _key("When index 0 stands.", 0.0, unit="ms")


class TensorSection(Section):
    """One tensor of an encoder's contract."""

    name: TensorName = _key("Name in the model's graph.")
    dtype: Literal[
        "BOOL", "UINT8", "INT8", "INT32", "INT64", "FP16", "BF16", "FP32", "FP64", "BYTES"
    ] = _key("Datatype of the Open Inference Protocol.")
    shape: list[Dim] = _key(
        "Each dimension a size, or a name that has one value within a request.", max_length=16
    )
    meaning: Literal[
        "pixels", "mel", "waveform", "token_ids", "attention_mask", "patch_features",
        "frame_features", "token_features", "global_embedding", "logits", "scores", "cache",
    ] = _key("What the numbers stand for.")  # fmt: skip
    space: Name | None = _key("The embedding space of a global_embedding.", None)
    range: list[float] | None = _key(
        "Lowest and highest value after preprocessing.", None, min_length=2, max_length=2
    )
    time_base: TimeBaseSection | None = _key("The rate of a time dimension.", None)


class PreprocessSection(Section):
    """How raw input becomes the encoder's tensors."""

    kind: Literal["image", "wordpiece", "log_mel", "tensor", "transcript"] = _key(
        "The preprocessor; tensor passes arrays through, checked, and transcript says how a "
        "decoder's tokens become text.",
        "tensor",
    )
    options: dict[TensorName, Scalar] = _key("Settings of that preprocessor.", {})
    assets: dict[Name, Text] = _key(
        "Files it needs: name to a path relative to this file, or package:relative/path.", {}
    )


class RangeSection(Section):
    """Shapes of one input tensor that a profile covers, inclusive; min <= opt <= max."""

    min: list[Size] = _key("Smallest shape.")
    opt: list[Size] = _key("The shape that the engine is tuned for.")
    max: list[Size] = _key("Largest shape.")


class EncoderSection(Section):
    """One encoder version and the contract it keeps."""

    version: str = _key("Version, as text: 1.0.0.", pattern=VERSION)
    modality: Name = _key("The modality it reads.")
    source: SourceSection = _key("Where the model comes from.")
    licence: str = _key("Licence of the weights, as an SPDX name where there is one.", "")
    inputs: list[TensorSection] = _key("Tensors it takes, in order.", min_length=1, max_length=64)
    outputs: list[TensorSection] = _key("Tensors it gives, in order.", min_length=1, max_length=64)
    preprocess: PreprocessSection = _section("From raw input to tensors.", PreprocessSection)
    state: Literal["stateless", "autoregressive_cache", "cross_modal_cache"] = _key(
        "What it remembers between calls.", "stateless"
    )
    precision: Modal = _key("Precision of its engines, unless a backend says otherwise.", "fp32")
    profiles: list[dict[TensorName, RangeSection]] | None = _key(
        "Shape ranges to compile for, a mapping of every input tensor to its range. Left out, one "
        "profile is made of the fixed sizes, with a dimension called batch from 1 to 8.",
        None, min_length=1, max_length=16,
    )  # fmt: skip


class AdapterSection(Section):
    """A map from one output of the encoder into a named embedding space."""

    kind: Literal["ridge", "conse", "identity", "auto"] = _key(
        "ridge is learned on pairs, conse combines class embeddings, identity passes on; auto is "
        "ridge where there are pairs enough, else conse on the output that its option scores names."
    )
    output: TensorName = _key("The encoder's output tensor that it reads.")
    space: Name = _key("The embedding space that it maps into.")
    options: dict[TensorName, Scalar] = _key("Settings of the adapter.", {})


class BranchSection(Section):
    """How one modality reaches the fusion: an encoder, then an adapter or a decoder."""

    encoder: Name = _key("The encoder that reads this modality.")
    adapter: AdapterSection | None = _key(
        "Map into the common space. Left out beside no decoder: identity on the encoder's one "
        "output that is a global_embedding with a space.",
        None,
    )
    decoder: Name | None = _key("An encoder entry that turns features into token ids.", None)
    then: Name | None = _key("The branch that the decoder's text goes through.", None)
    weight: float = _key("Weight in the fusion.", 1.0, gt=0)
    timeout_ms: float | None = _key(
        "After this the branch is left out; at most p99_ms.", None, unit="ms", gt=0
    )


class FusionSection(Section):
    """When enough branches have answered."""

    policy: Literal["all", "any", "quorum", "weighted", "ordered"] = _key(
        "Which branches an answer waits for.", "any"
    )
    threshold: float = _key("Share of the weight that weighted waits for.", 0.5, unit="share")
    quorum: int = _key("Branches that quorum waits for.", 1, ge=1)


class AnswerSection(Section):
    """What the service answers."""

    kind: Literal["retrieval", "embedding"] = _key(
        "retrieval: the nearest items of the catalogue; embedding: the fused vector.", "retrieval"
    )
    top_k: int = _key("Items of a retrieval.", 5, ge=1, le=1000)


class BackendSection(Section):
    """One backend to build engines with."""

    backend: Literal["openvino", "onnxruntime", "tensorrt", "tensorrt_rtx"] = _key("The backend.")
    targets: list[Annotated[str, Field(pattern=TARGET)]] = _key(
        "host, or GPU generations (SM89) to compile plans for ahead of time.",
        ["host"], min_length=1, max_length=16,
    )  # fmt: skip
    deploy: bool = _key("The one backend that the target runs.", False)
    precision: Modal | None = _key("Overrides the encoders' precision.", None)


class DriftSection(Section):
    """The drift gate."""

    false_alarm_rate: float = _key(
        "Share of windows of unchanged data that may alarm.", 0.01, unit="share", gt=0, lt=1
    )
    minimum_samples: int = _key("Fewer than this decide nothing.", 30, ge=2)


class PrivacySection(Section):
    """The privacy gate."""

    policy: Name = _key(
        "The policy table that de-identification and its audit follow.", "gdpr-default"
    )


class CompatibilitySection(Section):
    """The encoder compatibility gate."""

    linf: float = _key("Drift of the L-infinity norm of key-layer outputs that warns.", 0.03, gt=0)


class QualitySection(Section):
    """The data-quality gate."""

    missing_rate: float = _key("Most samples that may lack a modality.", 0.05, unit="share")


class RecallSection(Section):
    """The recall gate of learned adapters."""

    over_chance: float = _key("Least held-out recall, as a multiple of chance.", 2.0, ge=1)


class WaiverSection(Section):
    """Somebody's word that one named finding may pass until a day."""

    finding: str = _key("Gate, rule and subject, as the verdict prints them: gate/code/subject.",
                        pattern=FINDING, max_length=512)  # fmt: skip
    owner: Text = _key("Who answers for it.")
    reason: Text = _key("Why it may pass.")
    until: str = _key("Last day it holds, in UTC: 2030-01-31.", pattern=DAY)


class GatesSection(Section):
    """Thresholds of the gates."""

    drift: DriftSection = _section("Drift gate.", DriftSection)
    privacy: PrivacySection = _section("Privacy gate.", PrivacySection)
    compatibility: CompatibilitySection = _section("Compatibility gate.", CompatibilitySection)
    quality: QualitySection = _section("Data-quality gate.", QualitySection)
    recall: RecallSection = _section("Recall gate.", RecallSection)
    waivers: list[WaiverSection] = _key("Findings that may pass for a time.", [], max_length=256)


class ReviewSection(Section):
    """Who has to approve."""

    people: int = _key("Different people who have to approve.", 2, ge=1, le=10)
    unattended: bool = _key("Allow --approve-as; for the local target only.", False)


class DeploySection(Section):
    """Where it runs and how traffic moves."""

    target: Literal["local", "kserve"] = _key("The deployment target.", "local")
    canary: list[Percent] = _key(
        "Steps of traffic, increasing and ending at 100.",
        [5, 25, 100], unit="percent", min_length=1, max_length=20,
    )  # fmt: skip
    hold_s: float = _key("Least time at each step.", 5.0, unit="s", ge=0)
    minimum_requests: int = _key("Least requests at each step before it is judged.", 20, ge=1)
    review: ReviewSection = _section("Who has to approve.", ReviewSection)


class PipelineDocument(Section):
    """One service: encoders, fusion, objectives, gates, deployment and schedules."""

    service: str = _key("Name of the service: a DNS label.", pattern=SERVICE)
    slo: SloSection = _section("Objectives.", SloSection)
    modalities: dict[Name, ModalitySection] = _key(
        "Kinds of input. Those that branches name need no entry here.", {}, max_length=64
    )
    data: DataSection = _key("Labelled media to release with.")
    encoders: dict[Name, EncoderSection] = _key("Encoders by name.", min_length=1, max_length=64)
    branches: dict[Name, BranchSection] = _key("Branches by modality.", min_length=1, max_length=16)
    fusion: FusionSection = _section("When enough branches have answered.", FusionSection)
    answer: AnswerSection = _section("What the service answers.", AnswerSection)
    backends: list[BackendSection] = Field(
        default_factory=lambda: [
            BackendSection(backend="openvino", deploy=True), BackendSection(backend="onnxruntime")
        ],
        description="Backends to build with; exactly one is deployed. Left out: openvino, "
        "deployed, and onnxruntime.",
        min_length=1, max_length=16,
    )  # fmt: skip
    gates: GatesSection = _section("Thresholds of the gates.", GatesSection)
    deploy: DeploySection = _section("Where it runs and how traffic moves.", DeploySection)
    schedules: dict[Literal[FLOWS], str] = _key(  # type: ignore[valid-type]
        "Flow to a five-field cron expression, in UTC.", {}
    )


def pipeline_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the user's file: closed objects, defaults, enums, `x-unit`."""
    schema = PipelineDocument.model_json_schema(by_alias=True)
    _close(schema)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _close(node: object) -> None:
    """Named entries admit no other name, and a title that repeats the key says nothing."""
    if isinstance(node, list):
        for item in node:
            _close(item)
    if not isinstance(node, dict):
        return
    if "patternProperties" in node:
        node["additionalProperties"] = False
    if isinstance(node.get("title"), str):
        del node["title"]
    for item in node.values():
        _close(item)
