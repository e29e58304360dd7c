"""How recordings are taken: what a pipeline declares, over what is built in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.ingest.timebase.rule import Rule, rule_of
from services.ingest.timebase.ticks import to_ns
from validators.contracts.modality import Modality
from validators.contracts.pipeline import IngestSettings, Pipeline

REFERENCES = ("video", "audio", "sensors", "document", "events")
"""The first of these that a recording has is its reference."""


@dataclass(frozen=True, slots=True)
class IngestPlan:
    """Settings of the section `ingest`, and the modalities whose gap policies hold."""

    settings: IngestSettings = field(default_factory=IngestSettings)
    modalities: tuple[Modality, ...] = ()

    @classmethod
    def of(cls, pipeline: Pipeline) -> IngestPlan:
        return cls(pipeline.ingest, pipeline.modalities)

    @property
    def every_ns(self) -> int:
        return to_ns(self.settings.sample_every_ms)

    @property
    def refuses_offsets(self) -> bool:
        return self.settings.offsets == "refuse"

    def rule(self, track: str, *, periodic: bool) -> Rule:
        declared: Mapping[str, Modality] = {item.name: item for item in self.modalities}
        return rule_of(
            track,
            periodic=periodic,
            modalities=declared,
            tolerance_ms=dict(self.settings.tolerance_ms),
        )
