"""What running two versions of an encoder on the same items has shown. No judgement in it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from validators.compatibility.estimates import Estimate
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
class Retrieval:
    """Queries of one version looking for their own items among vectors of another.

    `queries` and `index` are "old" or "new". `first` is recall at 1, `within` recall at the
    geometry's `neighbours`. A tie is not found.
    """

    queries: str
    index: str
    first: Estimate
    within: Estimate


@dataclass(frozen=True, slots=True)
class Geometry:
    """One embedding in both versions, over distinct items that are finite in both.

    With two `views` of each item the first is indexed and the second one asks; with one view an
    item asks for itself. What compares the two spaces directly is None where dimensions differ.

    Attributes:
        same_space: the two contracts give the embedding one space's name.
        duplicates: items left out because an equal input came before.
        left_out_old, left_out_new: items left out because that version was not finite on them.
        cosine: between the two vectors of an item.
        rank_correlation: Spearman's, of all pairwise similarities; None without any variation.
        overlap: share of the `neighbours` nearest items that both spaces agree on.
        flips_mixed, flips_reindexed: negative flips, the share of queries right with old on old
            and wrong with new queries on the old index, or on a new one ("Positive-Congruent
            Training", Yan et al., CVPR 2021).
        kept: of the queries right with old on old, the share right with new on old as it is.
        adapted: the same through a ridge map, each half of the items by one fitted on the other.
    """

    output: str
    same_space: bool
    old_dim: int
    new_dim: int
    items: int
    duplicates: int
    left_out_old: int
    left_out_new: int
    views: int
    neighbours: int
    cosine: Estimate | None
    rank_correlation: Estimate | None
    overlap: Estimate
    retrievals: tuple[Retrieval, ...]
    flips_mixed: Estimate | None
    flips_reindexed: Estimate
    kept: Estimate | None
    adapted: Estimate
    adapted_cosine: float
    new_spread: Spread

    def retrieval(self, queries: str, index: str) -> Retrieval | None:
        return next(
            (item for item in self.retrievals if (item.queries, item.index) == (queries, index)),
            None,
        )

    @property
    def found_by_old(self) -> int:
        """Queries that the old version answers right: what a new one can lose."""
        return self.adapted.count


@dataclass(frozen=True, slots=True)
class CompatibilityMeasurement:
    """Two versions of one encoder on the same items. `*_ms`: the median time of one item."""

    encoder: str
    old_version: str
    new_version: str
    items: int
    outputs: tuple[OutputDrift, ...]
    geometries: tuple[Geometry, ...]
    differences: tuple[StaticDifference, ...]
    lost_outputs: tuple[str, ...]
    encode_old_ms: float = 0.0
    encode_new_ms: float = 0.0


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
