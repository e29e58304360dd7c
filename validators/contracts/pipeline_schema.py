"""The shape of the user's file: what a key is called, what it may hold, what it means.

The models here and in `pipeline_encoder_schema` and `pipeline_gates_schema` are the one source of
the parser, of the JSON Schema that editors read and of the reference page `docs/pipeline-file.md`.
What concerns two keys at once is in `pipeline_rules`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from validators.contracts.pipeline_alerts_schema import AlertsSection
from validators.contracts.pipeline_encoder_schema import EncoderSection
from validators.contracts.pipeline_gates_schema import GatesSection
from validators.contracts.pipeline_ingest_schema import IngestSection
from validators.contracts.pipeline_keys import (
    FACTORY,
    SERVICE,
    TARGET,
    Modal,
    Name,
    Percent,
    Scalar,
    Section,
    TensorName,
    Text,
    key,
    section,
)

FLOWS = (
    "release", "ingest", "deidentify", "build_engines", "compatibility", "drift_watch",
    "slo_watch", "rollout", "retention",
)  # fmt: skip


class SloSection(Section):
    """What the service promises, end to end, from arrival to the last byte."""

    slo_class: Literal["offline", "interactive", "edge"] = key(
        "The class, with its own bounds: offline within 5000 ms, interactive P99 within 300 ms, "
        "edge P95 within 80 ms and two modalities at most.",
        "interactive", alias="class",
    )  # fmt: skip
    p99_ms: float | None = key(
        "Declared 99th percentile of latency; the bound of the class where it is left out.",
        None, unit="ms", gt=0,
    )  # fmt: skip
    soft_limit_ms: float | None = key(
        "After this the light answer is given; below p99_ms. Five sixths of p99_ms where left out.",
        None, unit="ms", gt=0,
    )  # fmt: skip
    peak_memory_mb: float = key("Most resident memory of one replica.", 4096.0, unit="MB", gt=0)
    consistency: float = key(
        "Least alignment score of matched pairs across modalities.", 0.25, unit="share"
    )
    error_rate: float = key("Most requests that may fail.", 0.01, unit="share")


class ModalitySection(Section):
    """A kind of input. What is left out comes from the built-in modality of that name, if any."""

    period_ms: float | None = key(
        "Time between samples; left out for what comes when it comes.", None, unit="ms", gt=0
    )
    jitter_ms: float | None = key("Spread of the period.", None, unit="ms", ge=0)
    tolerance_ms: float | None = key(
        "How late a sample may be and still be worth using; at least the jitter.",
        None, unit="ms", gt=0,
    )  # fmt: skip
    weight: float | None = key("Base share in the scheduler.", None, gt=0)
    main: bool = key("The channel that degradation protects; one at most.", False)
    gap: Literal["interpolate", "drop", "hold", "refuse"] | None = key(
        "What ingest does at a moment for which a recording has nothing of it: interpolate between "
        "its neighbours (numbers only), drop it there, hold the last item, refuse the recording.",
        None,
    )
    hold_ms: float | None = key("Most age of a held item.", None, unit="ms", gt=0)


class DataSection(Section):
    """Labelled media to release with: exactly one of the two."""

    folder: Text | None = key("A folder with manifest.jsonl, relative to this file.", None)
    factory: str | None = key(
        "package.module:function that makes such a folder.", None, pattern=FACTORY
    )


class AdapterSection(Section):
    """A map from one output of the encoder into a named embedding space."""

    kind: Literal["ridge", "conse", "identity", "auto"] = key(
        "ridge is learned on pairs, conse combines class embeddings, identity passes on; auto is "
        "ridge where there are pairs enough, else conse on the output that its option scores names."
    )
    output: TensorName = key("The encoder's output tensor that it reads.")
    space: Name = key("The embedding space that it maps into.")
    options: dict[TensorName, Scalar] = key("Settings of the adapter.", {})


class BranchSection(Section):
    """How one modality reaches the fusion: an encoder, then an adapter or a decoder."""

    encoder: Name = key("The encoder that reads this modality.")
    adapter: AdapterSection | None = key(
        "Map into the common space. Left out beside no decoder: identity on the encoder's one "
        "output that is a global_embedding with a space.",
        None,
    )
    decoder: Name | None = key("An encoder entry that turns features into token ids.", None)
    then: Name | None = key("The branch that the decoder's text goes through.", None)
    weight: float = key("Weight in the fusion.", 1.0, gt=0)
    timeout_ms: float | None = key(
        "After this the branch is left out; at most p99_ms.", None, unit="ms", gt=0
    )


class FusionSection(Section):
    """When enough branches have answered."""

    policy: Literal["all", "any", "quorum", "weighted", "ordered"] = key(
        "Which branches an answer waits for.", "any"
    )
    threshold: float = key("Share of the weight that weighted waits for.", 0.5, unit="share")
    quorum: int = key("Branches that quorum waits for.", 1, ge=1)


class AnswerSection(Section):
    """What the service answers."""

    kind: Literal["retrieval", "embedding"] = key(
        "retrieval: the nearest items of the catalogue; embedding: the fused vector.", "retrieval"
    )
    top_k: int = key("Items of a retrieval.", 5, ge=1, le=1000)


class BackendSection(Section):
    """One backend to build engines with."""

    backend: Literal["openvino", "onnxruntime", "tensorrt", "tensorrt_rtx"] = key("The backend.")
    targets: list[Annotated[str, Field(pattern=TARGET)]] = key(
        "host, or GPU generations (SM89) to compile plans for ahead of time.",
        ["host"], min_length=1, max_length=16,
    )  # fmt: skip
    deploy: bool = key("The one backend that the target runs.", False)
    precision: Modal | None = key("Overrides the encoders' precision.", None)


class ReviewSection(Section):
    """Who has to approve."""

    people: int = key("Different people who have to approve.", 2, ge=1, le=10)
    unattended: bool = key("Allow --approve-as; for the local target only.", False)


class DeploySection(Section):
    """Where it runs and how traffic moves."""

    target: Literal["local", "kserve"] = key("The deployment target.", "local")
    canary: list[Percent] = key(
        "Steps of traffic, increasing and ending at 100.",
        [5, 25, 100], unit="percent", min_length=1, max_length=20,
    )  # fmt: skip
    hold_s: float = key("Least time at each step.", 5.0, unit="s", ge=0)
    minimum_requests: int = key("Least requests at each step before it is judged.", 20, ge=1)
    review: ReviewSection = section("Who has to approve.", ReviewSection)


class PipelineDocument(Section):
    """One service: encoders, fusion, objectives, gates, deployment and schedules."""

    service: str = key("Name of the service: a DNS label.", pattern=SERVICE)
    slo: SloSection = section("Objectives.", SloSection)
    modalities: dict[Name, ModalitySection] = key(
        "Kinds of input. Those that branches name need no entry here.", {}, max_length=64
    )
    data: DataSection = key("Labelled media to release with.")
    encoders: dict[Name, EncoderSection] = key("Encoders by name.", min_length=1, max_length=64)
    branches: dict[Name, BranchSection] = key("Branches by modality.", min_length=1, max_length=16)
    fusion: FusionSection = section("When enough branches have answered.", FusionSection)
    answer: AnswerSection = section("What the service answers.", AnswerSection)
    backends: list[BackendSection] = Field(
        default_factory=lambda: [
            BackendSection(backend="openvino", deploy=True), BackendSection(backend="onnxruntime")
        ],
        description="Backends to build with; exactly one is deployed. Left out: openvino, "
        "deployed, and onnxruntime.",
        min_length=1, max_length=16,
    )  # fmt: skip
    gates: GatesSection = section("Thresholds of the gates.", GatesSection)
    deploy: DeploySection = section("Where it runs and how traffic moves.", DeploySection)
    schedules: dict[Literal[FLOWS], str] = key(  # type: ignore[valid-type]
        "Flow to a five-field cron expression, in UTC.", {}
    )
    ingest: IngestSection = section("How recordings become aligned samples.", IngestSection)
    alerts: AlertsSection = section("When live drift alarms, and whom it tells.", AlertsSection)


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
