"""What the quality gate is to judge by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from validators.contracts.quality import QualityRules
from validators.quality.words import Suite


@dataclass(frozen=True, slots=True)
class QualitySettings:
    """`missing_rate` is the bearable share of samples without an expected modality, 0..1.

    `suites` by name; those that are left out are taken from what every medium of a modality has to
    be (`contract.usual_suite`). `expected` are the modalities that samples should have, where the
    suite over all samples is left out; empty means every modality that some sample has.
    """

    missing_rate: float = 0.05
    expected: tuple[str, ...] = ()
    suites: Mapping[str, Suite] = field(default_factory=dict)
    rules: QualityRules = field(default_factory=QualityRules)
