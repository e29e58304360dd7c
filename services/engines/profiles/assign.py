"""Which profile serves a request, and what is done with one that is outside every profile.

The answer is a value, whatever comes in: a request is never failed by a crash over its shape.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from services.engines.profiles.bounds import MAX_SIZE, bounds_of
from services.engines.profiles.cost import ShapeFormula
from validators.contracts.engine import Outside, ShapeProfile
from validators.contracts.tensors import TensorSpec

Sizes = tuple[tuple[str, int], ...]  # dimension and size, in the profiles' order
MAX_PARTS = 64
MAX_SPLIT_ROWS = 1024  # bounds what planning one request's split can cost


@dataclass(frozen=True, slots=True)
class OutsidePolicy:
    """What is allowed, what splitting is bounded by, and which dimensions may be cut."""

    allowed: tuple[Outside, ...] = (Outside.PAD, Outside.SPLIT)
    batch_dim: str = "batch"
    max_parts: int = 8
    cuttable: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ServedProfile:
    """A profile as requests meet it: which one it is, and its corners by dimension."""

    index: int
    minimum: Mapping[str, int]
    maximum: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Serve:
    """Run at the profile's maximum; `covered` is False where a size had to be raised into it."""

    profile: int
    sizes: Sizes
    padded_work: float
    covered: bool = True


@dataclass(frozen=True, slots=True)
class Part:
    """`rows` of the batch, served by a profile."""

    rows: int
    serve: Serve


@dataclass(frozen=True, slots=True)
class Split:
    """Run the batch in parts, in order, and join the outputs."""

    dim: str
    parts: tuple[Part, ...]
    padded_work: float


@dataclass(frozen=True, slots=True)
class Cut:
    """Drop what is beyond these sizes of a sequence, its end token too, then run the rest.

    The rest is another input than the one that was sent: the answer is degraded and has to say so.
    """

    dims: Sizes  # the dimensions that are cut, and what is left of each
    rest: Serve | Split


@dataclass(frozen=True, slots=True)
class Degrade:
    """Not servable now. `fits` is the nearest shape that would be; () where nothing would."""

    reason: str
    fits: Sizes
    remedy: str


Decision = Serve | Split | Cut | Degrade


def served_profiles(
    inputs: Sequence[TensorSpec], profiles: Sequence[ShapeProfile]
) -> tuple[ServedProfile, ...]:
    """An engine's profiles, in its order, as `assign` takes them.

    Raises:
        BadInput: a profile that contradicts the contract, or leaves a named dimension open.
    """
    found = []
    for index, profile in enumerate(profiles):
        bounds = bounds_of(inputs, profile)
        found.append(
            ServedProfile(
                index,
                {bound.name: bound.minimum for bound in bounds},
                {bound.name: bound.maximum for bound in bounds},
            )
        )
    return tuple(found)


def assign(
    sizes: Mapping[str, int],
    profiles: Sequence[ServedProfile],
    work: ShapeFormula,
    policy: OutsidePolicy = OutsidePolicy(),
) -> Decision:
    """Serve at the least padded work, or what the policy says for a shape outside every profile.

    Sizes beside the profiles' dimensions are ignored. Nothing is raised over `sizes`.
    """
    if not profiles:
        return Degrade("no profile is loaded", (), "Build an engine first.")
    dims = tuple(profiles[0].maximum)
    if wrong := [name for name in dims if not 1 <= sizes.get(name, 0) <= MAX_SIZE]:
        return Degrade(
            f"the request has no valid size of {wrong[0]}",
            _nearest({}, profiles, work, policy),
            f"Give every one of {', '.join(dims)} a size from 1 to {MAX_SIZE}.",
        )
    asked = {name: sizes[name] for name in dims}
    if inside := [item for item in profiles if _covers(item, asked)]:
        return _served(asked, _least(inside, work), work)
    if Outside.PAD in policy.allowed and (room := [p for p in profiles if _fits(asked, p)]):
        return _served(asked, _least(room, work), work, covered=False)
    if Outside.SPLIT in policy.allowed and (split := _split(asked, profiles, work, policy)):
        return split
    if Outside.CUT in policy.allowed and (cut := _cut(asked, profiles, work, policy)):
        return cut
    return _degraded(asked, profiles, work, policy)


def _covers(profile: ServedProfile, sizes: Mapping[str, int]) -> bool:
    return _fits(sizes, profile) and all(profile.minimum[name] <= sizes[name] for name in sizes)


def _fits(sizes: Mapping[str, int], profile: ServedProfile) -> bool:
    return all(size <= profile.maximum[name] for name, size in sizes.items())


def _least(profiles: Sequence[ServedProfile], work: ShapeFormula) -> ServedProfile:
    return min(profiles, key=lambda item: (work.at(item.maximum), item.index))


def _served(
    asked: Mapping[str, int], profile: ServedProfile, work: ShapeFormula, *, covered: bool = True
) -> Serve:
    padding = work.at(profile.maximum) - work.at(asked)
    return Serve(profile.index, tuple(profile.maximum.items()), padding, covered)


def _split(
    asked: Mapping[str, int],
    profiles: Sequence[ServedProfile],
    work: ShapeFormula,
    policy: OutsidePolicy,
) -> Split | None:
    """The parts with least work, then fewest: a covering knapsack over the batch's rows.

    None where the batch is not a dimension, is not what is too large, or takes too many parts; or
    where a part would have to be padded into its profile's minimum, and may not be.
    """
    dim = policy.batch_dim
    if dim not in asked or asked[dim] > _most_rows(asked, profiles, policy):
        return None
    usable, most = _usable(asked, profiles, policy), _most_parts(policy)
    rows = _shared_out(asked[dim], dim, _chosen(asked[dim], dim, usable, work, most))
    parts = tuple(
        Part(count, _served({**asked, dim: count}, item, work,
                            covered=_covers(item, {**asked, dim: count})))
        for item, count in rows
    )  # fmt: skip
    if Outside.PAD not in policy.allowed and not all(part.serve.covered for part in parts):
        return None
    return Split(dim, parts, sum(part.serve.padded_work for part in parts))


def _most_parts(policy: OutsidePolicy) -> int:
    return min(policy.max_parts, MAX_PARTS)


def _most_rows(
    asked: Mapping[str, int], profiles: Sequence[ServedProfile], policy: OutsidePolicy
) -> int:
    """The largest batch that may be split at the request's other sizes; 0 where none may be."""
    if Outside.SPLIT not in policy.allowed:
        return 0
    takes = [item.maximum[policy.batch_dim] for item in _usable(asked, profiles, policy)]
    return min(MAX_SPLIT_ROWS, _most_parts(policy) * max(takes, default=0))


def _usable(
    asked: Mapping[str, int], profiles: Sequence[ServedProfile], policy: OutsidePolicy
) -> list[ServedProfile]:
    """The profiles that can serve a part of the request's batch."""
    dim = policy.batch_dim
    return [
        item for item in profiles
        if dim in asked and _fits({**asked, dim: 1}, item)
        and (Outside.PAD in policy.allowed or _covers(item, {**asked, dim: item.minimum[dim]}))
    ]  # fmt: skip


def _chosen(
    batch: int, dim: str, usable: Sequence[ServedProfile], work: ShapeFormula, most: int
) -> list[ServedProfile]:
    """The profiles that take a batch together at the least work, at most `most` of them."""
    prices = [work.at(item.maximum) for item in usable]
    takes = [item.maximum[dim] for item in usable]
    left_over = np.arange(batch + 1)
    # costs[parts][rows]: parts are counted, since the cheapest cover may take too many of them
    costs = [np.where(left_over == 0, 0.0, math.inf)]
    choices: list[npt.NDArray[np.intp]] = []
    for _ in range(min(most, batch)):
        tried = np.array([
            costs[-1][np.maximum(0, left_over - take)] + price
            for price, take in zip(prices, takes, strict=True)
        ])  # fmt: skip
        choices.append(tried.argmin(axis=0))
        costs.append(tried.min(axis=0))
    parts = min(range(len(costs)), key=lambda count: (costs[count][batch], count))
    chosen, left = [], batch
    for choice_of in reversed(choices[:parts]):
        chosen.append(int(choice_of[left]))
        left = max(0, left - takes[chosen[-1]])
    return [
        usable[choice] for choice in sorted(chosen, key=lambda choice: (-takes[choice], choice))
    ]


def _shared_out(
    batch: int, dim: str, chosen: Sequence[ServedProfile]
) -> list[tuple[ServedProfile, int]]:
    """Rows for each profile: its minimum where there are enough, then the first ones are filled."""
    least = [item.minimum[dim] for item in chosen]
    rows = least if sum(least) <= batch else [1] * len(chosen)
    left = batch - sum(rows)
    shared = []
    for item, count in zip(chosen, rows, strict=True):
        more = min(left, item.maximum[dim] - count)
        shared.append((item, count + more))
        left -= more
    return shared


def _cut(
    asked: Mapping[str, int],
    profiles: Sequence[ServedProfile],
    work: ShapeFormula,
    policy: OutsidePolicy,
) -> Cut | None:
    """The cut that keeps most of the request, then the one that pads least; None if none helps.

    The batch is never cut: each of its rows belongs to somebody.
    """
    uncut = replace(policy, allowed=tuple(o for o in policy.allowed if o is not Outside.CUT))
    dims = policy.cuttable - {policy.batch_dim}
    best: tuple[float, float] | None = None
    found = None
    for item in profiles:
        kept = {name: min(size, item.maximum[name]) if name in dims else size
                for name, size in asked.items()}  # fmt: skip
        rest = assign(kept, profiles, work, uncut)
        if kept == asked or not isinstance(rest, Serve | Split):
            continue
        quality = (work.at(kept), -rest.padded_work)
        if best is None or quality > best:
            best = quality
            less = tuple((name, size) for name, size in kept.items() if size < asked[name])
            found = Cut(less, rest)
    return found


def _nearest(
    asked: Mapping[str, int],
    profiles: Sequence[ServedProfile],
    work: ShapeFormula,
    policy: OutsidePolicy,
) -> Sizes:
    """The request cut or raised into the profile, or the split, that keeps most of its work."""
    clipped = [
        {name: max(item.minimum[name], min(asked.get(name, most), most))
         for name, most in item.maximum.items()}
        for item in profiles
    ]  # fmt: skip
    dim = policy.batch_dim
    for sizes in tuple(clipped) if dim in asked else ():
        wider = {**sizes, dim: min(asked[dim], _most_rows(sizes, profiles, policy))}
        if wider[dim] > sizes[dim] and (
            Outside.PAD in policy.allowed or _split(wider, profiles, work, policy)
        ):
            clipped.append(wider)
    return tuple(max(clipped, key=work.at).items())


def _degraded(
    asked: Mapping[str, int],
    profiles: Sequence[ServedProfile],
    work: ShapeFormula,
    policy: OutsidePolicy,
) -> Degrade:
    nearest = _nearest(asked, profiles, work, policy)
    largest = {name: max(item.maximum[name] for item in profiles) for name in asked}
    if policy.batch_dim in asked:
        split = _most_rows(dict(nearest), profiles, policy)
        largest[policy.batch_dim] = max(largest[policy.batch_dim], split)
    over = [f"{name} {size} is over {largest[name]}" for name, size in asked.items()
            if size > largest[name]]  # fmt: skip
    allowed = " or ".join(item.value for item in policy.allowed) or "nothing"
    reason = "; ".join(over) or "no profile covers these sizes together"
    return Degrade(
        f"{reason} (policy allows {allowed})",
        nearest,
        "Send at most: " + ", ".join(f"{name} {size}" for name, size in nearest) + ".",
    )
