"""The thresholds of the lineage gate."""

from __future__ import annotations

from dataclasses import dataclass

from validators.contracts.verdict import Outcome
from validators.lineage.tags import REQUIRED_TAGS

MINIMUM_SAMPLES = 30
"""Counts of tags need no more; vectors may: what drift asks for beyond it is not asked here."""


@dataclass(frozen=True, slots=True)
class LineageSettings:
    """What alerts and what blocks.

    `shift_outcome` is a shifted distribution's: WARN at a release, where a person reads it; a watch
    whose hysteresis counts FAIL asks for FAIL. `missing_outcome` is that of serving samples without
    their tags: a watch over requests that need not say them may ask for INCONCLUSIVE.
    `false_alarm_rate` is per comparison, over all its categories together.
    """

    required_tags: tuple[str, ...] = REQUIRED_TAGS
    brightness_shift: float = 0.2  # share of the reference's mean
    brightness_z: float = 2.0  # standard errors that a shift of all pictures must exceed
    slice_pictures: int = 10  # a slice with fewer on either side is not judged
    minimum_samples: int = MINIMUM_SAMPLES
    false_alarm_rate: float = 0.01
    shift_effect: float = 0.1  # total variation beyond chance: share of samples
    shift_outcome: Outcome = Outcome.WARN
    missing_outcome: Outcome = Outcome.FAIL
    seed: int = 0
