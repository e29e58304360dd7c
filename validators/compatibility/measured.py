"""What running two versions of an encoder on the same items has shown. No judgement in it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from validators.contracts.tensors import Meaning


class CompatibilityWord(enum.Enum):
    """How vectors of the old version may be used beside those of the new one."""

    COMPATIBLE = "COMPATIBLE"  # as they are
    ADAPTER = "ADAPTER"  # through a learned map
    REINDEX = "REINDEX"  # not at all: encode everything again
    BLOCK = "BLOCK"  # the new version may not be used


@dataclass(frozen=True, slots=True)
class StaticDifference:
    """One thing the two contracts or engines declare differently."""

    what: str  # "preprocess.size", "inputs", "precision"
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class OutputDrift:
    """One output that both versions have.

    `linf_drift` is the mean over items of | |new| - |old| | / |old|, with | | the largest absolute
    value of the item's tensor; None where no item of both is finite. `cosine_mean` compares item by
    item where the shapes agree. `nonfinite_*` are shares of all elements.
    """

    output: str
    meaning: Meaning
    linf_drift: float | None
    cosine_mean: float | None
    nonfinite_old: float
    nonfinite_new: float


@dataclass(frozen=True, slots=True)
class Spread:
    """Whether vectors differ at all: exp(entropy of the spectrum), and mean cosine distance.

    The effective rank is that of Roy and Vetterli, EUSIPCO 2007, of the centred unit vectors.
    """

    effective_rank: float
    distance_mean: float


@dataclass(frozen=True, slots=True)
class Geometry:
    """One embedding in both versions, over items that are finite in both.

    `top1_hits` of `items` new vectors have their own item's old vector as nearest, as they are;
    None where the dimensions differ. `overlap` is the mean share of the `neighbours` nearest items
    that both spaces agree on. A ridge map from new to old was fitted on half of the items:
    `adapted_hits` of the `held_out` others find their own item through it. `same_space`: the two
    contracts give the embedding one space's name.
    """

    output: str
    same_space: bool
    old_dim: int
    new_dim: int
    items: int
    cosine_mean: float | None
    top1_hits: int | None
    neighbours: int
    overlap: float
    held_out: int
    adapted_hits: int
    adapted_cosine_mean: float
    new_spread: Spread


@dataclass(frozen=True, slots=True)
class CompatibilityMeasurement:
    """Two versions of one encoder on the same items."""

    encoder: str
    old_version: str
    new_version: str
    items: int
    outputs: tuple[OutputDrift, ...]
    geometries: tuple[Geometry, ...]
    differences: tuple[StaticDifference, ...]
    lost_outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HalfCheck:
    """One embedding of a first version on two halves of its own data.

    `across` is the mean cosine distance between the halves over the mean within them: about 1 where
    both halves are of one kind.
    """

    output: str
    first: Spread
    second: Spread
    across: float


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """A first version by itself. `nonfinite` is the largest share over its outputs."""

    encoder: str
    version: str
    items: int
    nonfinite: float
    halves: tuple[HalfCheck, ...]
