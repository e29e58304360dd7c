"""What the data-quality gate asks of a data set besides its suites: rules as data, from the file.

Every rule names what it does when it is broken: `off`, `warn` or `fail`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Consequence(enum.Enum):
    """What a broken rule does to the gate's verdict."""

    OFF = "off"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class DuplicateRules:
    """One content under several ids.

    `near` is about pictures whose difference hashes differ in `near_bits` of 64 at most. A copy
    that lies on both sides of the train/held-out split flatters every measurement: `across_splits`.
    `ignore` are modalities that may well repeat: two pictures of one thing have one caption.
    """

    exact: Consequence = Consequence.WARN
    across_splits: Consequence = Consequence.FAIL
    near: Consequence = Consequence.WARN
    near_bits: int = 3
    ignore: tuple[str, ...] = ("text",)


@dataclass(frozen=True, slots=True)
class TimeRules:
    """Capture times. `future_s` is how far a clock may run ahead of this machine's.

    `disorder` and `repeated` are about the samples of one recording (the tag `recording`), in the
    order of their ids.
    """

    impossible: Consequence = Consequence.FAIL
    future_s: float = 86_400.0
    disorder: Consequence = Consequence.WARN
    repeated: Consequence = Consequence.WARN


@dataclass(frozen=True, slots=True)
class LabelRules:
    """Classes and their balance.

    The class is the value of `tag`; without one, the caption itself. `classes` fixes the classes
    and their order, `index` is the tag that holds a class's place in it.
    """

    tag: str | None = None
    index: str | None = None
    classes: tuple[str, ...] = ()
    minimum_count: int = 5
    largest_share: float = 0.8
    rare: Consequence = Consequence.WARN
    imbalance: Consequence = Consequence.WARN
    unknown: Consequence = Consequence.FAIL  # a class that `classes` does not have
    vanished: Consequence = Consequence.FAIL  # one that the reference release had
    reordered: Consequence = Consequence.FAIL  # another place in the order than there


MAY_BE_CONSTANT = (
    "characters", "clipped_share", "digit_share", "duration_ms", "height_px", "non_latin_share",
    "saturation", "width_px", "words",
)  # fmt: skip
"""Measures that may have one value in all samples: sizes, and shares of what need not occur."""


@dataclass(frozen=True, slots=True)
class ColumnRules:
    """Measures and tags taken over all samples: what never changes, is never there, is new.

    `unseen` is about values of tags that the reference release never had; the tags that the lineage
    gate compares are its own affair.
    """

    constant: Consequence = Consequence.WARN
    ignore: tuple[str, ...] = MAY_BE_CONSTANT
    empty: Consequence = Consequence.FAIL
    unseen: Consequence = Consequence.WARN


@dataclass(frozen=True, slots=True)
class ClippingRule:
    """Recordings at full scale (0 dBFS): the share of samples from which one counts as clipped."""

    outcome: Consequence = Consequence.WARN
    share: float = 0.001


@dataclass(frozen=True, slots=True)
class QualityRules:
    """The rules of one pipeline.

    `suites` is the folder of edited suites, relative to the pipeline file; None: generated from the
    contracts. `minimum_samples` is the least number that a share, or a column's constancy, is
    judged on.
    """

    suites: str | None = None
    minimum_samples: int = 20
    duplicates: DuplicateRules = field(default_factory=DuplicateRules)
    times: TimeRules = field(default_factory=TimeRules)
    labels: LabelRules | None = None
    columns: ColumnRules = field(default_factory=ColumnRules)
    clipping: ClippingRule = field(default_factory=ClippingRule)
