"""When enough branches have answered: a state machine per request, without clock or I/O.

Over the branches whose modality the request holds (what is missing is masked, never waited for):

- `all`: every branch, each within its own time-out; one that is late or fails drops out.
- `any`: the first one.
- `quorum`: `quorum` of them (of fewer, all); impossible once too few are left.
- `weighted`: branches that hold `threshold` of the weight present; impossible likewise.
- `ordered`: the first in declared order that can still come; it alone is used.

No policy answers with nothing, and none waits past the request's deadline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from validators.contracts.errors import Unsupported
from validators.contracts.pipeline import Fusion

POLICIES = ("all", "any", "quorum", "weighted", "ordered")


@dataclass(frozen=True, slots=True)
class FusedBranch:
    """One branch of a request: its weight, and until when it is waited for."""

    modality: str
    weight: float
    deadline_ns: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to decide before this time, unless a branch reports."""

    until_ns: int


@dataclass(frozen=True, slots=True)
class Ready:
    """Fuse these branches now. `degraded`: a branch that was wanted was late or failed."""

    used: tuple[str, ...]
    degraded: bool


@dataclass(frozen=True, slots=True)
class Starved:
    """The policy can no longer be met. `late` and `failed` say by whom."""

    late: tuple[str, ...]
    failed: tuple[str, ...]


Decision = Wait | Ready | Starved


class FusionRound:
    """Follows the branches of one request. Events and time come in, decisions go out."""

    def __init__(self, fusion: Fusion, branches: Sequence[FusedBranch], deadline_ns: int) -> None:
        if fusion.policy not in POLICIES:
            raise Unsupported(
                f"there is no fusion policy {fusion.policy!r}",
                where="fusion.policy",
                remedy=f"Use one of: {', '.join(POLICIES)}.",
            )
        self._fusion = fusion
        self._branches = {branch.modality: branch for branch in branches}
        self._deadline_ns = deadline_ns
        self._arrived: set[str] = set()
        self._failed: set[str] = set()

    def arrived(self, modality: str) -> None:
        """The branch has a vector."""
        self._arrived.add(modality)

    def failed(self, modality: str) -> None:
        """The branch will never have one."""
        self._failed.add(modality)

    def decide(self, now_ns: int) -> Decision:
        """What to do at this time; asking again with nothing new answers the same."""
        pending = self._pending(now_ns)
        arrived = [name for name in self._branches if name in self._arrived]
        wanted = self._choose(arrived, pending)
        if wanted is None and pending:
            return Wait(min(self._until(name) for name in pending))
        lost = [name for name in self._branches if name not in arrived and name not in pending]
        if not wanted:
            failed = tuple(name for name in lost if name in self._failed)
            return Starved(tuple(name for name in lost if name not in failed), failed)
        return Ready(tuple(wanted), degraded=bool(lost))

    def _choose(self, arrived: list[str], pending: list[str]) -> list[str] | None:
        """The branches to use; None while more are needed and can still come."""
        match self._fusion.policy:
            case "all":
                return None if pending else arrived
            case "any":
                return arrived or None
            case "quorum":
                needed = max(1, min(self._fusion.quorum, len(self._branches)))
                return _enough(arrived, len(arrived) >= needed, len(arrived + pending) >= needed)
            case "weighted":
                return _enough(arrived, self._holds(arrived), self._holds(arrived + pending))
            case _:
                return self._first_in_order(arrived, pending)

    def _first_in_order(self, arrived: list[str], pending: list[str]) -> list[str] | None:
        for name in self._branches:
            if name in arrived:
                return [name]
            if name in pending:
                return None
        return []

    def _holds(self, names: Sequence[str]) -> bool:
        weights: Mapping[str, float] = {n: b.weight for n, b in self._branches.items()}
        share = sum(weights[name] for name in names)
        return bool(names) and share >= self._fusion.threshold * sum(weights.values()) - 1e-9

    def _pending(self, now_ns: int) -> list[str]:
        settled = self._arrived | self._failed
        return [n for n in self._branches if n not in settled and now_ns < self._until(n)]

    def _until(self, name: str) -> int:
        return min(self._branches[name].deadline_ns, self._deadline_ns)


def _enough(arrived: list[str], now: bool, possible: bool) -> list[str] | None:
    if now:
        return arrived
    return None if possible else []
