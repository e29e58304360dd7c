"""From the checked document to the frozen values. Everything here may rely on the rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from validators.contracts.engine import TOLERANCES, Precision, Tolerance
from validators.contracts.modality import DEFAULT_MODALITIES, Gap, Modality
from validators.contracts.pipeline import (
    AdapterEntry,
    AlertSettings,
    Answer,
    BackendPlan,
    Branch,
    DataSource,
    Deployment,
    Fusion,
    GateSettings,
    IngestSettings,
    Pipeline,
    Review,
)
from validators.contracts.pipeline_encoder_build import build_encoder, options_of
from validators.contracts.pipeline_encoder_schema import EncoderSection
from validators.contracts.pipeline_gates_schema import (
    GatesSection,
    ParitySection,
    ToleranceSection,
    WaiverSection,
)
from validators.contracts.pipeline_ingest_schema import IngestSection
from validators.contracts.pipeline_quality_schema import build_quality
from validators.contracts.pipeline_rules import limits_of, own_spaces
from validators.contracts.pipeline_schema import (
    BackendSection,
    BranchSection,
    DeploySection,
    ModalitySection,
    PipelineDocument,
    SloSection,
)
from validators.contracts.slo import Slo, SloClass
from validators.contracts.verdict import Waiver


def build_pipeline(document: PipelineDocument) -> Pipeline:
    """The pipeline of a document that breaks no rule."""
    data = document.data
    return Pipeline(
        service=document.service,
        slo=_slo(document.slo),
        modalities=_modalities(document),
        encoders=tuple(build_encoder(name, item) for name, item in document.encoders.items()),
        branches=tuple(
            _branch(name, item, document.encoders[item.encoder])
            for name, item in document.branches.items()
        ),
        fusion=Fusion(document.fusion.policy, document.fusion.threshold, document.fusion.quorum),
        answer=Answer(document.answer.kind, document.answer.top_k),
        data=DataSource("folder", data.folder) if data.folder is not None
        else DataSource("factory", data.factory or ""),
        backends=tuple(_backend(item) for item in document.backends),
        gates=_gates(document.gates),
        deployment=_deployment(document.deploy),
        schedules=tuple(sorted(document.schedules.items())),
        alerts=AlertSettings(**document.alerts.model_dump()),
        ingest=_ingest(document.ingest),
    )  # fmt: skip


def _slo(section: SloSection) -> Slo:
    p99_ms, soft_ms = limits_of(section)
    return Slo(
        slo_class=SloClass(section.slo_class),
        p99_ms=p99_ms,
        soft_limit_ms=soft_ms,
        peak_memory_mb=section.peak_memory_mb,
        consistency=section.consistency,
        error_rate=section.error_rate,
    )


def _modalities(document: PipelineDocument) -> tuple[Modality, ...]:
    """Those that the file declares or its branches name, each over the built-in one of its name."""
    built_in = {item.name: item for item in DEFAULT_MODALITIES}
    names = dict.fromkeys([*document.modalities, *document.branches])
    return tuple(
        _modality(built_in.get(name, Modality(name)), document.modalities.get(name))
        for name in names
    )


def _modality(base: Modality, section: ModalitySection | None) -> Modality:
    if section is None:
        return base
    return Modality(
        name=base.name,
        period_ms=base.period_ms if section.period_ms is None else section.period_ms,
        jitter_ms=base.jitter_ms if section.jitter_ms is None else section.jitter_ms,
        tolerance_ms=base.tolerance_ms if section.tolerance_ms is None else section.tolerance_ms,
        weight=base.weight if section.weight is None else section.weight,
        main=section.main,
        gap=base.gap if section.gap is None else Gap(section.gap),
        hold_ms=base.hold_ms if section.hold_ms is None else section.hold_ms,
    )


def _ingest(section: IngestSection) -> IngestSettings:
    return IngestSettings(
        section.sample_every_ms, section.offsets, tuple(sorted(section.tolerance_ms.items()))
    )


def _branch(modality: str, section: BranchSection, encoder: EncoderSection) -> Branch:
    return Branch(
        modality=modality,
        encoder=section.encoder,
        adapter=_adapter(section, encoder),
        decoder=section.decoder,
        then=section.then,
        weight=section.weight,
        timeout_ms=section.timeout_ms,
    )


def _adapter(section: BranchSection, encoder: EncoderSection) -> AdapterEntry | None:
    """The declared adapter; where there is none and no decoder, the encoder's own space."""
    if section.adapter is not None:
        item = section.adapter
        return AdapterEntry(item.kind, item.output, item.space, options_of(item.options))
    if section.decoder is not None:
        return None
    (output,) = own_spaces(encoder)
    return AdapterEntry("identity", output.name, output.space or "")


def _backend(section: BackendSection) -> BackendPlan:
    return BackendPlan(
        backend=section.backend,
        targets=tuple(dict.fromkeys(section.targets)),
        deploy=section.deploy,
        precision=None if section.precision is None else Precision(section.precision),
    )


def _gates(section: GatesSection) -> GateSettings:
    return GateSettings(
        drift_false_alarm_rate=section.drift.false_alarm_rate,
        drift_minimum_samples=section.drift.minimum_samples,
        drift_record=section.drift.record,
        privacy_policy=section.privacy.policy,
        compatibility_linf=section.compatibility.linf,
        parity=_tolerances(section.parity),
        parity_task=section.parity.task,
        quality_missing_rate=section.quality.missing_rate,
        quality=build_quality(section.quality),
        recall_over_chance=section.recall.over_chance,
        waivers=tuple(_waiver(item) for item in section.waivers),
    )


def _tolerances(section: ParitySection) -> tuple[tuple[Precision, Tolerance], ...]:
    stated = ((item, getattr(section, item.value)) for item in Precision)
    return tuple((item, _tolerance(item, limits)) for item, limits in stated if limits is not None)


def _tolerance(precision: Precision, stated: ToleranceSection) -> Tolerance:
    usual = TOLERANCES[precision]
    return Tolerance(
        usual.max_rel if stated.max_rel is None else stated.max_rel,
        usual.cosine_min if stated.cosine_min is None else stated.cosine_min,
    )


def _waiver(section: WaiverSection) -> Waiver:
    """In force through the whole of its last day, UTC."""
    last = datetime.fromisoformat(section.until).replace(tzinfo=UTC)
    until_s = last.timestamp() + timedelta(days=1).total_seconds()
    return Waiver(section.finding, section.owner, section.reason, until_s)


def _deployment(section: DeploySection) -> Deployment:
    return Deployment(
        target=section.target,
        canary=tuple(section.canary),
        hold_s=section.hold_s,
        minimum_requests=section.minimum_requests,
        review=Review(section.review.people, section.review.unattended),
    )
