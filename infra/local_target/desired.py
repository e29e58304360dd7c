"""What should serve, as a value, and the transitions between such values. No I/O.

Each transition is idempotent: applied to its own result it changes nothing, so a verb whose caller
died may be called again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from validators.contracts.deployment import Revision
from validators.contracts.digest import Digest
from validators.contracts.errors import BadInput, Conflict, NotFound


@dataclass(frozen=True, slots=True)
class PinnedRevision:
    """A revision by its bundle's digest, and the folder the bundle lies in."""

    name: str
    bundle: Digest
    path: str


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The last roll-back: which revision lost its traffic, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class DesiredState:
    """The whole of a service's deployment. `previous` is the known-good one before `stable`."""

    service: str
    stable: PinnedRevision | None = None
    canary: PinnedRevision | None = None
    canary_percent: int = 0
    previous: PinnedRevision | None = None
    withdrawn: Withdrawal | None = None
    stopped: bool = False

    @property
    def revisions(self) -> tuple[PinnedRevision, ...]:
        """What has to be loaded, the stable one first."""
        return tuple(item for item in (self.stable, self.canary) if item is not None)

    def percent_of(self, name: str) -> int:
        """The share of traffic, 0..100, that a revision should get."""
        if self.canary is not None and name == self.canary.name:
            return self.canary_percent
        if self.stable is not None and name == self.stable.name:
            return 100 - (self.canary_percent if self.canary is not None else 0)
        return 0


def admit(state: DesiredState, revision: Revision) -> DesiredState:
    """The state with a revision beside what serves: the first takes all traffic, a later one none.

    Raises:
        Conflict: another canary has traffic, or the name stands for another bundle.
    """
    pinned = PinnedRevision(revision.name, revision.bundle, revision.bundle_path)
    for known in state.revisions:
        if known.name == pinned.name and known.bundle != pinned.bundle:
            raise Conflict(
                f"revision {pinned.name} already stands for another bundle",
                where=state.service,
                remedy="Give the new bundle a name of its own.",
            )
    if state.stable is None:
        return replace(state, stable=pinned, stopped=False, withdrawn=None)
    if state.stable.bundle == pinned.bundle:
        return replace(state, stable=replace(state.stable, path=pinned.path), stopped=False)
    if state.canary is not None and state.canary.bundle == pinned.bundle:
        return replace(state, canary=replace(state.canary, path=pinned.path), stopped=False)
    if state.canary is not None and state.canary_percent > 0:
        raise Conflict(
            f"the canary {state.canary.name} has {state.canary_percent} % of the traffic",
            where=state.service,
            remedy="Promote it or roll it back before another revision is applied.",
        )
    return replace(state, canary=pinned, canary_percent=0, stopped=False, withdrawn=None)


def weigh_canary(state: DesiredState, percent: int) -> DesiredState:
    """The state with the canary at `percent` of the traffic.

    Raises:
        BadInput: not a whole percent of 0..100.  Conflict: there is no canary.
    """
    if isinstance(percent, bool) or not isinstance(percent, int) or not 0 <= percent <= 100:
        raise BadInput(f"{percent!r} is not a whole percent of 0..100", where=state.service)
    if state.canary is None or state.stopped:
        raise Conflict(
            "there is no canary to give traffic to",
            where=state.service,
            remedy="Apply a revision first.",
        )
    return replace(state, canary_percent=percent)


def settle_on_canary(state: DesiredState) -> DesiredState:
    """The state with the canary as stable and the old stable as known-good; without one, itself.

    Raises:
        NotFound: nothing is deployed.
    """
    if state.stable is None or state.stopped:
        raise NotFound(
            "nothing is deployed that could be promoted",
            where=state.service,
            remedy="Apply a revision first.",
        )
    if state.canary is None:
        return state
    return replace(state, stable=state.canary, canary=None, canary_percent=0, previous=state.stable)


def withdraw(state: DesiredState, reason: str) -> DesiredState:
    """The state without its newest revision: the canary, or else the stable one.

    After a roll-back another one changes nothing until a revision is applied: a caller that was
    killed and asks again must not lose a second revision.

    Raises:
        NotFound: nothing is deployed.  Conflict: no known-good revision is left.
    """
    if state.stable is None or state.stopped:
        raise NotFound(
            "nothing is deployed that could be rolled back",
            where=state.service,
            remedy="Apply a revision first.",
        )
    if state.canary is not None:
        gone = Withdrawal(state.canary.name, reason)
        return replace(state, canary=None, canary_percent=0, withdrawn=gone)
    if state.withdrawn is not None:
        return state
    if state.previous is None:
        raise Conflict(
            f"there is no known-good revision before {state.stable.name}",
            where=state.service,
            remedy="Apply a bundle that works, or stop the service.",
        )
    gone = Withdrawal(state.stable.name, reason)
    return replace(state, stable=state.previous, previous=None, withdrawn=gone)


def halt(state: DesiredState, *, forget: bool = False) -> DesiredState:
    """The state of a service that should not run; its stable revision stays pinned or is forgotten.

    So is then what came before it: a rolled-back first revision leaves nothing known to be good.
    """
    if forget:
        return DesiredState(state.service)
    return replace(state, canary=None, canary_percent=0, stopped=True)
