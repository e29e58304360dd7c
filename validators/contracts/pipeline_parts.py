"""The parts of a user's file that could be read, also where others could not.

Rules about several keys still run beside a typing error elsewhere, so that everything that is wrong
is reported at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from validators.contracts.modality import DEFAULT_MODALITIES
from validators.contracts.pipeline_alerts_schema import AlertsSection
from validators.contracts.pipeline_encoder_schema import EncoderSection
from validators.contracts.pipeline_gates_schema import WaiverSection
from validators.contracts.pipeline_keys import Section
from validators.contracts.pipeline_schema import (
    BackendSection,
    BranchSection,
    DataSection,
    DeploySection,
    FusionSection,
    ModalitySection,
    PipelineDocument,
    SloSection,
)

S = TypeVar("S", bound=Section)


@dataclass(frozen=True, slots=True)
class Parts:
    """What was readable. A name with None stands for an entry that has its own complaint."""

    slo: SloSection | None
    data: DataSection | None
    fusion: FusionSection | None
    deploy: DeploySection | None
    modalities: Mapping[str, ModalitySection | None]
    encoders: Mapping[str, EncoderSection | None] | None
    branches: Mapping[str, BranchSection | None]
    backends: Mapping[int, BackendSection] | None
    waivers: Mapping[int, WaiverSection]
    schedules: Mapping[str, str]
    alerts: AlertsSection | None

    def modality_names(self) -> list[str]:
        return sorted({item.name for item in DEFAULT_MODALITIES} | set(self.modalities))

    def readable_branches(self) -> dict[str, BranchSection]:
        return {name: item for name, item in self.branches.items() if item is not None}

    def readable_encoders(self) -> dict[str, EncoderSection]:
        return {name: item for name, item in (self.encoders or {}).items() if item is not None}


def parts_of(value: Mapping[str, object]) -> Parts:
    """The readable parts of a file's value."""
    encoders = value.get("encoders")
    gates = value.get("gates")
    return Parts(
        slo=_read(SloSection, value.get("slo", {})),
        data=_read(DataSection, value.get("data")),
        fusion=_read(FusionSection, value.get("fusion", {})),
        deploy=_read(DeploySection, value.get("deploy", {})),
        modalities=_each(ModalitySection, value.get("modalities")),
        encoders=_each(EncoderSection, encoders) if isinstance(encoders, Mapping) else None,
        branches=_each(BranchSection, value.get("branches")),
        backends=_backends(value),
        waivers=_listed(WaiverSection, gates.get("waivers") if isinstance(gates, Mapping) else []),
        schedules=_texts(value.get("schedules")),
        alerts=_read(AlertsSection, value.get("alerts", {})),
    )


def _read(kind: type[S], value: object) -> S | None:
    try:
        return kind.model_validate(value)
    except ValidationError:
        return None


def _each(kind: type[S], value: object) -> dict[str, S | None]:
    if not isinstance(value, Mapping):
        return {}
    return {name: _read(kind, item) for name, item in value.items()}


def _listed(kind: type[S], value: object) -> dict[int, S]:
    items = value if isinstance(value, list) else []
    read = {index: _read(kind, item) for index, item in enumerate(items)}
    return {index: item for index, item in read.items() if item is not None}


def _backends(value: Mapping[str, object]) -> dict[int, BackendSection] | None:
    """None where one of them could not be read: then nobody knows which are deployed."""
    if "backends" not in value:
        default = PipelineDocument.model_fields["backends"].get_default(call_default_factory=True)
        return dict(enumerate(default))
    stated = value["backends"]
    read = _listed(BackendSection, stated)
    return read if isinstance(stated, list) and 0 < len(stated) == len(read) else None


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    return {name: item for name, item in value.items() if isinstance(item, str)}
