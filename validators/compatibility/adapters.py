"""Adapters from a new version's space into the old one's: what was measured, and which is taken.

Every figure is of pairs that no fit has seen, so the choice rests on nothing that a larger model
could have learnt by heart.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from validators.compatibility.estimates import Estimate
from validators.contracts.digest import Digest
from validators.contracts.origin import VectorOrigin

HELD_OUT_SHARE = 0.3
VALIDATION_SHARE = 0.2
"""Of the pairs that are not held out: what chooses ranks, strengths and when to stop."""

MINIMUM_PAIRS = 64
"""Below it 30 % held out cannot show, even without any error, that four of five items are found."""


class AdapterKind(enum.Enum):
    """In order of preference among equals: the simpler first."""

    PROCRUSTES = "procrustes"  # a turn (and reflection): keeps every cosine among new vectors
    AFFINE = "affine"  # reduced-rank ridge regression
    MLP = "mlp"  # the affine map and a small learned correction


@dataclass(frozen=True, slots=True)
class AdapterMeasurement:
    """One fitted adapter on held-out pairs: new vectors through it among all old vectors.

    Attributes:
        fitted, held_out: pairs that were learnt from, and pairs that it was measured on.
        first, within: recall at 1 and at `neighbours` of new queries through it on the old index of
            all items, those it was fitted on included.
        unseen: recall at 1 on an index of held-out items alone.
        old_first: recall at 1 of the old version's own queries, the same items on the same index.
        kept: of the queries that the old version answers right, the share still right.
        flips: share of all queries right with the old version and wrong through the adapter.
        cosine: between adapted and old vector of an item.
        latency_ms: median added time of one vector.
        parameters: numbers in it.
        detail: what was chosen on the validation pairs ("rank 64").
    """

    kind: AdapterKind
    fitted: int
    held_out: int
    neighbours: int
    first: Estimate
    within: Estimate
    unseen: Estimate
    old_first: Estimate
    kept: Estimate
    flips: Estimate
    cosine: Estimate
    latency_ms: float
    parameters: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class AdapterChoice:
    """The adapter that is taken, or why there is none. `missing_pairs`: how many more it takes."""

    chosen: AdapterMeasurement | None
    reason: str
    missing_pairs: int = 0


@dataclass(frozen=True, slots=True)
class AdapterRecord:
    """A registered adapter: its engine, and what was measured with that engine on held-out pairs.

    It turns vectors of `new` into the space of `old`; both origins name encoder and engine.
    """

    encoder: str
    output: str
    old: VectorOrigin
    new: VectorOrigin
    old_dim: int
    new_dim: int
    measured: AdapterMeasurement
    refused: tuple[AdapterMeasurement, ...]  # the other candidates
    onnx: Digest
    engine_key: Digest
    engine: Digest
    manifest: Digest  # of the sealed VERIFIED manifest


def missing_pairs(pairs: int) -> int:
    """How many pairs are lacking before any adapter may be fitted and judged."""
    return max(MINIMUM_PAIRS - pairs, 0)


def choose_adapter(
    measurements: Iterable[AdapterMeasurement], *, kept_share: float = 0.8, pairs: int | None = None
) -> AdapterChoice:
    """The simplest adapter that no other one clearly beats, if it keeps enough.

    Clearly: the best one's share of kept answers lies above the simpler one's whole interval.
    `kept_share` is what the lower bound of the taken one has to reach; `pairs` are all there were.
    """
    found = sorted(measurements, key=lambda item: list(AdapterKind).index(item.kind))
    lacking = missing_pairs(pairs) if pairs is not None else 0
    if lacking or not found:
        return AdapterChoice(None, "too few pairs to fit and judge an adapter", lacking)
    best = max(found, key=lambda item: item.kept.value)
    simplest = next(item for item in found if item.kept.high >= best.kept.value)
    able = [item for item in found if item.kept.low >= kept_share]
    if simplest.kept.low >= kept_share:
        return AdapterChoice(simplest, "the simplest within the best one's reach")
    if able:
        return AdapterChoice(able[0], "the simplest whose lower bound is high enough")
    return AdapterChoice(
        None,
        f"the best, {best.kind.value}, keeps {best.kept.describe()} of the right answers, and "
        f"its lower bound is below {kept_share:g}",
    )
