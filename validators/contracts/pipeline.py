"""A pipeline: encoders, fusion, SLO, gates, deployment, as values. The user's file becomes this.

Parsing lives in `pipeline_file`; nothing here reads YAML.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import (
    TOLERANCES,
    Outside,
    Precision,
    ShapeProfile,
    Tolerance,
)
from validators.contracts.errors import NotFound
from validators.contracts.modality import Modality
from validators.contracts.quality import QualityRules
from validators.contracts.slo import Slo
from validators.contracts.verdict import Waiver


class SourceKind(enum.Enum):
    ONNX = "onnx"  # location is a file, relative to the pipeline file
    TORCH = "torch"  # location is "package.module:factory"


@dataclass(frozen=True, slots=True)
class EncoderSource:
    kind: SourceKind
    location: str


@dataclass(frozen=True, slots=True)
class AutoProfiles:
    """Profiles planned from the shapes that were seen, within bounds.

    `count` profiles at most, `memory_mb` for all of them together (None: no bound). The encoder's
    `profiles` then hold one profile, the bounds themselves: nothing outside it is ever served.
    """

    count: int = 4
    memory_mb: int | None = None


@dataclass(frozen=True, slots=True)
class EncoderEntry:
    """One encoder of the pipeline, and how its engines are to be built.

    `asset_files` maps asset names of the contract's preprocessing to files or `package:path`
    references; digests are filled in when the release reads them. `precisions` are the candidates
    that are measured where there are several, `precision` being the first; the fastest that passes
    parity is taken. `auto` plans the profiles.
    """

    contract: EncoderContract
    source: EncoderSource
    precision: Precision
    profiles: tuple[ShapeProfile, ...]
    asset_files: tuple[tuple[str, str], ...] = ()
    precisions: tuple[Precision, ...] = ()
    auto: AutoProfiles | None = None
    outside: tuple[Outside, ...] = (Outside.PAD, Outside.SPLIT)

    @property
    def name(self) -> str:
        return self.contract.name


@dataclass(frozen=True, slots=True)
class AdapterEntry:
    """A map from one encoder's output into a named embedding space.

    `kind` is "ridge" (learned on pairs), "conse" (training-free, from class scores), "identity",
    or "auto" (ridge where there are pairs enough, else conse; the release resolves it).
    """

    kind: str
    output: str  # the encoder's output tensor it reads
    space: str
    options: tuple[tuple[str, str | int | float | bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """How one modality reaches the fusion: encoder, then adapter or decoder.

    `decoder` names an encoder entry that turns features into token ids, step by step; its text then
    goes through the branch called `then`.
    """

    modality: str
    encoder: str
    adapter: AdapterEntry | None = None
    decoder: str | None = None
    then: str | None = None
    weight: float = 1.0
    timeout_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Fusion:
    """When enough branches have answered. `policy`: all, any, quorum, weighted, ordered."""

    policy: str
    threshold: float = 0.5
    quorum: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What the pipeline says: today `retrieval`, the nearest items of a catalogue."""

    kind: str
    top_k: int = 5


@dataclass(frozen=True, slots=True)
class DataSource:
    """Labelled media: a folder with `manifest.jsonl`, or a `package.module:factory` for one."""

    kind: str  # "folder" or "factory"
    location: str


@dataclass(frozen=True, slots=True)
class BackendPlan:
    """One backend to build with. `deploy` marks the one that the target will run."""

    backend: str
    targets: tuple[str, ...] = ("host",)  # "host", or SM names for ahead-of-time plans
    deploy: bool = False
    precision: Precision | None = None  # None: the encoder's own


@dataclass(frozen=True, slots=True)
class GateSettings:
    """The thresholds of the gates, each with the default that the schema documents.

    `parity` holds the precisions whose tolerance is not the usual one; `parity_task` is the least
    share of the task's answers that a precision has to keep to be chosen.
    """

    drift_false_alarm_rate: float = 0.01
    drift_minimum_samples: int = 30
    drift_record: float = 0.1
    privacy_policy: str = "gdpr-default"
    compatibility_linf: float = 0.03
    parity: tuple[tuple[Precision, Tolerance], ...] = ()
    parity_task: float = 0.98
    quality_missing_rate: float = 0.05
    quality: QualityRules = field(default_factory=QualityRules)
    recall_over_chance: float = 2.0
    waivers: tuple[Waiver, ...] = ()

    def tolerance(self, precision: Precision) -> Tolerance:
        """What the parity gate accepts of this precision."""
        return dict(self.parity).get(precision, TOLERANCES[precision])


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """When drift in live traffic alarms, whom it tells, and what follows: rebuild, review, none.

    `drifted` of the latest `windows` have to have drifted.
    """

    windows: int = 3
    drifted: int = 2
    cooldown_s: float = 3600.0
    alertmanager: str | None = None
    webhook: str | None = None
    on_alarm: str = "review"


@dataclass(frozen=True, slots=True)
class Review:
    people: int = 2
    unattended: bool = False


@dataclass(frozen=True, slots=True)
class Deployment:
    """Where it runs and how traffic moves. `canary` are percents in order, ending at 100."""

    target: str = "local"
    canary: tuple[int, ...] = (5, 25, 100)
    hold_s: float = 5.0
    minimum_requests: int = 20
    review: Review = field(default_factory=Review)


@dataclass(frozen=True, slots=True)
class IngestSettings:
    """How recordings become samples: one every `sample_every_ms` of the common time base.

    `offsets` is "repair" or "refuse": what is done with a track out of step. `tolerance_ms` are
    the tracks whose tolerance is not the usual one.
    """

    sample_every_ms: float = 1000.0
    offsets: str = "repair"
    tolerance_ms: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The user's file as one value."""

    service: str
    slo: Slo
    modalities: tuple[Modality, ...]
    encoders: tuple[EncoderEntry, ...]
    branches: tuple[Branch, ...]
    fusion: Fusion
    answer: Answer
    data: DataSource
    backends: tuple[BackendPlan, ...]
    gates: GateSettings
    deployment: Deployment
    schedules: tuple[tuple[str, str], ...] = ()
    alerts: AlertSettings = field(default_factory=AlertSettings)
    ingest: IngestSettings = field(default_factory=IngestSettings)

    def encoder(self, name: str) -> EncoderEntry:
        for entry in self.encoders:
            if entry.name == name:
                return entry
        raise NotFound(f"the pipeline has no encoder {name!r}", where=self.service)

    def branch(self, modality: str) -> Branch:
        for branch in self.branches:
            if branch.modality == modality:
                return branch
        raise NotFound(f"the pipeline has no branch for {modality!r}", where=self.service)

    def measures_precision(self, entry: EncoderEntry) -> bool:
        """Whether the deployed precision of this encoder is left to measurement on this host."""
        plan = self.deploy_backend
        several = len(set(entry.precisions)) > 1
        return several and plan.precision is None and plan.targets == ("host",)

    @property
    def deploy_backend(self) -> BackendPlan:
        for plan in self.backends:
            if plan.deploy:
                return plan
        raise NotFound("no backend of the pipeline is marked deploy", where=self.service)
