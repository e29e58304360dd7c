"""From the checked document to the frozen values. Everything here may rely on the rules."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from validators.contracts.encoder import EncoderContract, PreprocessSpec
from validators.contracts.encoder_rules import BATCH
from validators.contracts.engine import Precision, ShapeProfile, ShapeRange
from validators.contracts.modality import DEFAULT_MODALITIES, Modality
from validators.contracts.pipeline import (
    AdapterEntry,
    Answer,
    BackendPlan,
    Branch,
    DataSource,
    Deployment,
    EncoderEntry,
    EncoderSource,
    Fusion,
    GateSettings,
    Pipeline,
    Review,
    SourceKind,
)
from validators.contracts.pipeline_encoder_schema import EncoderSection, TensorSection
from validators.contracts.pipeline_gates_schema import GatesSection, WaiverSection
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
from validators.contracts.tensors import DType, Meaning, StateKind, TensorSpec, TimeBase
from validators.contracts.verdict import Waiver

DEFAULT_BATCH = (1, 1, 8)
"""Minimum, optimum and maximum of `batch` where an encoder declares no profile."""

Scalar = str | int | float | bool


def build_pipeline(document: PipelineDocument) -> Pipeline:
    """The pipeline of a document that breaks no rule."""
    data = document.data
    return Pipeline(
        service=document.service,
        slo=_slo(document.slo),
        modalities=_modalities(document),
        encoders=tuple(_encoder(name, item) for name, item in document.encoders.items()),
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
    )


def _encoder(name: str, section: EncoderSection) -> EncoderEntry:
    source = section.source
    contract = EncoderContract(
        name=name,
        version=section.version,
        modality=section.modality,
        inputs=tuple(_tensor(item) for item in section.inputs),
        outputs=tuple(_tensor(item) for item in section.outputs),
        preprocess=PreprocessSpec(section.preprocess.kind, _options(section.preprocess.options)),
        state=StateKind(section.state),
        licence=section.licence,
    )
    return EncoderEntry(
        contract=contract,
        source=EncoderSource(SourceKind.ONNX, source.onnx) if source.onnx is not None
        else EncoderSource(SourceKind.TORCH, source.torch or ""),
        precision=Precision(section.precision),
        profiles=_profiles(section),
        asset_files=tuple(sorted(section.preprocess.assets.items())),
    )  # fmt: skip


def _tensor(section: TensorSection) -> TensorSpec:
    base, limits = section.time_base, section.range
    return TensorSpec(
        name=section.name,
        dtype=DType(section.dtype),
        shape=tuple(section.shape),
        meaning=Meaning(section.meaning),
        space=section.space,
        time_base=TimeBase(base.dim, base.rate_hz, base.offset_ms) if base is not None else None,
        value_range=(limits[0], limits[1]) if limits is not None else None,
    )


def _profiles(section: EncoderSection) -> tuple[ShapeProfile, ...]:
    """Ranges in the order of the contract's inputs."""
    if section.profiles is None:
        return (ShapeProfile(tuple(_default_range(item) for item in section.inputs)),)
    return tuple(
        ShapeProfile(
            tuple(
                ShapeRange(
                    item.name,
                    tuple(profile[item.name].min),
                    tuple(profile[item.name].opt),
                    tuple(profile[item.name].max),
                )
                for item in section.inputs
            )
        )
        for profile in section.profiles
    )


def _default_range(tensor: TensorSection) -> ShapeRange:
    sizes = [DEFAULT_BATCH if dim == BATCH else (int(dim),) * 3 for dim in tensor.shape]
    return ShapeRange(
        tensor.name,
        tuple(size[0] for size in sizes),
        tuple(size[1] for size in sizes),
        tuple(size[2] for size in sizes),
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
        return AdapterEntry(item.kind, item.output, item.space, _options(item.options))
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
        privacy_policy=section.privacy.policy,
        compatibility_linf=section.compatibility.linf,
        quality_missing_rate=section.quality.missing_rate,
        recall_over_chance=section.recall.over_chance,
        waivers=tuple(_waiver(item) for item in section.waivers),
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


def _options(options: Mapping[str, Scalar]) -> tuple[tuple[str, Scalar], ...]:
    return tuple(sorted(options.items()))
