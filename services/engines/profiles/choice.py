"""Which profiles an encoder's engines get, and why: from what was seen to a document of evidence.

Pure: the windows of shapes, the bounds and the graph's footprint come in.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.engines.profiles.ahead import Trial, plan_ahead
from services.engines.profiles.bounds import bind_dims, bounds_of, symbolic_dims
from services.engines.profiles.cost import MemoryModel
from services.engines.profiles.footprint import Footprint
from services.engines.profiles.histogram import ShapeHistogram, merge
from services.engines.profiles.ladders import ladders
from services.engines.profiles.plan import ProfilePlan, padding_of
from validators.contracts.engine import ShapeProfile
from validators.contracts.pipeline import AutoProfiles, EncoderEntry
from validators.contracts.tensors import TensorSpec

KEPT_WITHIN = 1.05
"""Profiles stay as they are while they cost at most this share of what new ones would."""


class Seen(enum.Enum):
    """Where the shapes come from: what serving recorded, the release's own data, or nowhere."""

    RECORDED = "recorded"
    DATA = "data"
    BOUNDS = "bounds"


@dataclass(frozen=True, slots=True)
class Shapes:
    """What profiles are planned from. `note` says why a recording is not used, where one is not."""

    seen: Seen
    windows: tuple[ShapeHistogram, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Rival:
    """Other profiles for the same shapes, for comparison: how many, and what they pad."""

    profiles: int
    padded_work: float
    padding_share: float


@dataclass(frozen=True, slots=True)
class ProfileChoice:
    """The profiles of an encoder's engines; a document by `canonical_json`.

    `profiles` are the shapes of every input, an engine spec's own words, in the order of `plan`,
    which names each profile's corners and optimum by dimension, with the requests and the padded
    work it is expected to have. `level` and `trials` are the headroom (see `ahead`). `kept` says
    that these are the profiles of before, judged anew: others would save too little. Without any
    shapes to plan from, the bounds are the one profile. `unsized_tensors` of the graph are counted
    too low in `memory`.
    """

    encoder: str
    seen: Seen
    note: str
    windows: int
    histogram: ShapeHistogram
    profiles: tuple[ShapeProfile, ...]
    plan: ProfilePlan
    level: int
    trials: tuple[Trial, ...]
    one_maximal: Rival
    powers_of_two: Rival
    memory: MemoryModel
    max_bytes: int | None
    unsized_tensors: int
    kept: bool = False


def choose_profiles(entry: EncoderEntry, shapes: Shapes, footprint: Footprint) -> ProfileChoice:
    """Planned profiles within the entry's bounds: `entry.profiles[0]`, always covered.

    Raises:
        TooLarge: one profile at the bounds' maximum is over the memory that is allowed.
        BadInput: windows of other dimensions than the contract's.
    """
    auto, inputs = entry.auto or AutoProfiles(), entry.contract.inputs
    declared = entry.profiles[0]
    bounds = bounds_of(inputs, declared)  # in the order of the histogram's dimensions
    max_bytes = None if auto.memory_mb is None else auto.memory_mb << 20
    windows = shapes.windows or (ShapeHistogram(symbolic_dims(inputs)),)
    histogram = merge(*windows)
    ahead = plan_ahead(
        windows, auto.count, bounds=bounds, memory=footprint.memory, max_bytes=max_bytes
    )
    plan = ahead.plan if histogram.total else _at_declared_optimum(ahead.plan, inputs, declared)
    grids = [padding_of(histogram, grid, bounds=bounds) for grid in ladders(bounds, auto.count)]
    top = tuple(bound.maximum for bound in bounds)
    return ProfileChoice(
        encoder=entry.name,
        seen=shapes.seen,
        note=shapes.note,
        windows=len(shapes.windows),
        histogram=histogram,
        profiles=plan.shape_profiles(inputs),
        plan=plan,
        level=ahead.level,
        trials=ahead.trials,
        one_maximal=_rival(padding_of(histogram, [top], bounds=bounds)),
        powers_of_two=_rival(min(grids, key=lambda grid: grid.padded_work)),
        memory=footprint.memory,
        max_bytes=max_bytes,
        unsized_tensors=footprint.unsized,
    )


def keep_or_change(
    new: ProfileChoice, before: ProfileChoice | None, auto: AutoProfiles
) -> ProfileChoice:
    """The profiles of before, where new ones would save little: changing them is not for free.

    Every engine would be built again, and vectors of new engines do not mix with those of the old.
    Both are judged on the shapes seen now; what is no longer allowed is never kept.
    """
    if before is None or before == new:
        return new
    held = before.plan
    now = (new.plan.bounds, new.memory, new.max_bytes)
    if (held.bounds, before.memory, before.max_bytes) != now or len(held.profiles) > auto.count:
        return new
    if before.profiles == new.profiles:
        return replace(new, kept=True)
    corners = [item.maximum for item in held.profiles]
    again = padding_of(new.histogram, corners, bounds=held.bounds, memory=new.memory)
    if _work(again) > KEPT_WITHIN * _work(new.plan):
        return new
    profiles = tuple(
        replace(judged, optimum=item.optimum)
        for judged, item in zip(again.profiles, held.profiles, strict=True)
    )
    plan = replace(again, profiles=profiles)
    return replace(new, plan=plan, profiles=before.profiles, kept=True)


def _at_declared_optimum(
    plan: ProfilePlan, inputs: Sequence[TensorSpec], declared: ShapeProfile
) -> ProfilePlan:
    """Where nothing was seen, the file knows best what the one profile is tuned for."""
    sizes = bind_dims(inputs, {item.tensor: item.optimum for item in declared.ranges})
    optimum = tuple(sizes[bound.name] for bound in plan.bounds)
    return replace(plan, profiles=tuple(replace(p, optimum=optimum) for p in plan.profiles))


def _work(plan: ProfilePlan) -> float:
    return plan.useful_work + plan.padded_work


def _rival(plan: ProfilePlan) -> Rival:
    return Rival(len(plan.profiles), plan.padded_work, plan.padding_share)
