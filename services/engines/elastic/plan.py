"""How a request of some shape is run by an engine with some profiles. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from services.engines.profiles.assign import (
    Cut,
    Decision,
    Degrade,
    OutsidePolicy,
    Serve,
    ServedProfile,
    Split,
    assign,
    served_profiles,
)
from services.engines.profiles.bounds import symbolic_dims
from services.engines.profiles.cost import ShapeFormula, linear_work
from services.engines.profiles.padding import Padder
from validators.contracts.engine import EngineManifest, Outside

REMEMBERED = 4096
"""Shapes whose choice is kept: looking through all profiles takes longer than some engines."""


@dataclass(frozen=True, slots=True)
class ElasticPolicy:
    """What may be done with shapes, and what bounds a client that sends many of them.

    outside             for shapes that no profile covers, as the bundle declares
    max_padding         padded over useful work, up to which a request runs at its profile's largest
                        shape; beyond, it runs at its own
    max_elements        numbers in all inputs of a request; more are refused unread
    max_request_factor  how many times the largest size of a dimension is still asked for
    max_requests        distinct shapes that one encoder of a revision ever asks for
    bounded             the profiles hold all that may be served: nothing is asked for
    """

    outside: tuple[Outside, ...] = (Outside.PAD, Outside.SPLIT)
    batch_dim: str = "batch"
    max_parts: int = 8
    max_padding: float = 0.25
    max_elements: int = 1 << 26
    max_request_factor: int = 4
    max_requests: int = 64
    bounded: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """How to run a request; whether a profile covers it as it is; what share of it is padding."""

    decision: Decision
    covered: bool
    padded_share: float


class ServingPlan:
    """Decides for one engine. Built once; deciding touches no tensor, and is remembered."""

    def __init__(self, manifest: EngineManifest, policy: ElasticPolicy) -> None:
        """Raises BadInput where a profile contradicts the contract."""
        inputs = manifest.inputs
        self.padder = Padder(inputs, manifest.outputs, policy.batch_dim)
        self.dims = symbolic_dims(inputs)
        self.profiles = served_profiles(inputs, manifest.spec.profiles)
        self.work: ShapeFormula = linear_work(self.dims)
        self._growable = _growable(self.padder, manifest)
        self._max_padding = policy.max_padding
        allowed = policy.outside
        if policy.batch_dim not in self._growable:  # its parts could not be joined either
            allowed = tuple(way for way in allowed if way is not Outside.SPLIT)
        self._policy = OutsidePolicy(
            allowed, policy.batch_dim, policy.max_parts, self.padder.cuttable
        )
        self._chosen = lru_cache(REMEMBERED)(self._choose)

    @property
    def largest(self) -> dict[str, int]:
        """The largest size of each dimension over all profiles."""
        return {name: max((p.maximum[name] for p in self.profiles), default=0)
                for name in self.dims}  # fmt: skip

    def choose(self, sizes: Mapping[str, int], *, may_cut: bool = True) -> Choice:
        """How to run a request whose named dimensions have these sizes."""
        return self._chosen(tuple(sizes[name] for name in self.dims), may_cut)

    def _choose(self, sizes: tuple[int, ...], may_cut: bool) -> Choice:
        asked = dict(zip(self.dims, sizes, strict=True))
        decision = self._decide(asked, may_cut)
        covered = any(_covers(profile, asked) for profile in self.profiles)
        run = decision.rest if isinstance(decision, Cut) else decision
        share = 0.0 if isinstance(run, Degrade) else run.padded_work / self._work_of(run)
        return Choice(decision, covered, share)

    def _decide(self, asked: Mapping[str, int], may_cut: bool) -> Decision:
        policy = self._policy
        if not may_cut:
            allowed = tuple(way for way in policy.allowed if way is not Outside.CUT)
            policy = replace(policy, allowed=allowed)
        usable = [item for item in self.profiles if self._reachable(item, asked)]
        decision = assign(asked, usable or self.profiles, self.work, policy)
        if not usable and not isinstance(decision, Degrade):
            decision = assign(asked, self.profiles, self.work, replace(policy, allowed=()))
        return self._fitted(decision, asked)

    def _work_of(self, decision: Serve | Split) -> float:
        """What running it costs, padding included."""
        parts = [decision] if isinstance(decision, Serve) else [p.serve for p in decision.parts]
        return sum(self.work.at(dict(part.sizes)) for part in parts)

    def _reachable(self, profile: ServedProfile, asked: Mapping[str, int]) -> bool:
        """No dimension that must not be padded is below the profile's minimum."""
        return all(
            size >= profile.minimum[name] or name in self._growable for name, size in asked.items()
        )

    def _fitted(self, decision: Decision, asked: Mapping[str, int]) -> Decision:
        match decision:
            case Serve():
                return self._sized(decision, asked)
            case Split():
                dim = decision.dim
                parts = tuple(
                    replace(part, serve=self._sized(part.serve, {**asked, dim: part.rows}))
                    for part in decision.parts
                )
                return replace(
                    decision, parts=parts, padded_work=sum(p.serve.padded_work for p in parts)
                )
            case Cut():
                rest = self._fitted(decision.rest, {**asked, **dict(decision.dims)})
                return replace(decision, rest=rest) if isinstance(rest, Serve | Split) else rest
            case _:
                return decision

    def _sized(self, serve: Serve, own: Mapping[str, int]) -> Serve:
        """Run at the profile's largest shape where that pads little, else as close as may be."""
        profile = self.profiles[serve.profile]
        top = {name: profile.maximum[name] if name in self._growable else size
               for name, size in own.items()}  # fmt: skip
        useful = self.work.at(own)
        if self.work.at(top) - useful > self._max_padding * useful:
            top = {name: max(size, profile.minimum[name]) for name, size in own.items()}
        return replace(serve, sizes=tuple(top.items()), padded_work=self.work.at(top) - useful)


def _covers(profile: ServedProfile, sizes: Mapping[str, int]) -> bool:
    return all(low <= sizes[name] <= profile.maximum[name] for name, low in profile.minimum.items())


def _growable(padder: Padder, manifest: EngineManifest) -> frozenset[str]:
    """The dimensions that may be padded; with an output of a dimension of its own, the batch."""
    own = set(symbolic_dims(manifest.inputs))
    if set(symbolic_dims(manifest.outputs)) <= own:
        return padder.paddable
    return padder.paddable & {padder.batch_dim}
