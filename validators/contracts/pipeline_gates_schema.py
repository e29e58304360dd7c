"""The shape of the gates' thresholds in the user's file, and of waivers."""

from __future__ import annotations

from validators.contracts.pipeline_keys import DAY, FINDING, Name, Section, Text, key, section
from validators.contracts.pipeline_quality_schema import QualitySection


class DriftSection(Section):
    """The drift gate."""

    false_alarm_rate: float = key(
        "Share of windows of unchanged data that may alarm.", 0.01, unit="share", gt=0, lt=1
    )
    minimum_samples: int = key("Fewer than this decide nothing.", 30, ge=2)
    record: float = key(
        "Share of live requests of which vectors and measures may be recorded; 0: none.",
        0.1, unit="share",
    )  # fmt: skip


class PrivacySection(Section):
    """The privacy gate."""

    policy: Name = key(
        "The policy table that de-identification and its audit follow.", "gdpr-default"
    )


class CompatibilitySection(Section):
    """The encoder compatibility gate."""

    linf: float = key("Drift of the L-infinity norm of key-layer outputs that warns.", 0.03, gt=0)


class ToleranceSection(Section):
    """What parity accepts of one precision; what is left out is the precision's own."""

    max_rel: float | None = key(
        "Most difference from the source model, over the largest value of its output.", None, gt=0
    )
    cosine_min: float | None = key(
        "Least cosine with the source model's vectors.", None, ge=-1, le=1
    )


class ParitySection(Section):
    """The parity gate of compiled engines, and what precision planning asks of the task."""

    fp32: ToleranceSection | None = key("Tolerance of fp32 engines.", None)
    fp16: ToleranceSection | None = key("Tolerance of fp16 engines.", None)
    bf16: ToleranceSection | None = key("Tolerance of bf16 engines.", None)
    int8: ToleranceSection | None = key("Tolerance of int8 engines.", None)
    int4: ToleranceSection | None = key("Tolerance of int4 engines.", None)
    task: float = key(
        "Least share of the task's answers that a precision keeps.", 0.98, unit="share"
    )


class RecallSection(Section):
    """The recall gate of learned adapters."""

    over_chance: float = key("Least held-out recall, as a multiple of chance.", 2.0, ge=1)


class WaiverSection(Section):
    """Somebody's word that one named finding may pass until a day."""

    finding: str = key("Gate, rule and subject, as the verdict prints them: gate/code/subject.",
                        pattern=FINDING, max_length=512)  # fmt: skip
    owner: Text = key("Who answers for it.")
    reason: Text = key("Why it may pass.")
    until: str = key("Last day it holds, in UTC: 2030-01-31.", pattern=DAY)


class GatesSection(Section):
    """Thresholds of the gates."""

    drift: DriftSection = section("Drift gate.", DriftSection)
    privacy: PrivacySection = section("Privacy gate.", PrivacySection)
    compatibility: CompatibilitySection = section("Compatibility gate.", CompatibilitySection)
    parity: ParitySection = section("Parity gate.", ParitySection)
    quality: QualitySection = section("Data-quality gate.", QualitySection)
    recall: RecallSection = section("Recall gate.", RecallSection)
    waivers: list[WaiverSection] = key("Findings that may pass for a time.", [], max_length=256)
