"""What a deployment looks like from outside: the desired state beside what the gateway says."""

from __future__ import annotations

from infra.local_target.admin import GatewayStatus
from infra.local_target.desired import DesiredState, PinnedRevision
from infra.local_target.records import Endpoints
from validators.contracts.deployment import (
    DeploymentPhase,
    DeploymentStatus,
    RevisionStatus,
)


def absent(service: str, target: str, message: str = "") -> DeploymentStatus:
    """The status of a service that is not deployed."""
    return DeploymentStatus(
        service, target, DeploymentPhase.ABSENT, None, None, 0, (), message=message
    )


def describe(
    state: DesiredState,
    target: str,
    seen: GatewayStatus | None,
    *,
    endpoints: Endpoints | None,
    pid: int | None,
    problem: str,
) -> DeploymentStatus:
    """The status of a service; `seen` is None where the gateway did not answer (`problem`)."""
    if state.stable is None or state.stopped:
        return absent(state.service, target, "stopped" if state.stopped else "")
    revisions = tuple(_revision(state, pinned, seen) for pinned in state.revisions)
    problem = problem or _difference(state, seen)
    running = seen is not None and endpoints is not None
    return DeploymentStatus(
        state.service,
        target,
        _phase(state, problem, starting=pid is not None and endpoints is None),
        state.stable.name,
        state.canary.name if state.canary else None,
        state.canary_percent if state.canary else 0,
        revisions,
        rest_url=endpoints.rest_url if running and endpoints else None,
        grpc_address=endpoints.grpc_address if running and endpoints else None,
        pid=pid,
        message=problem or _history(state),
    )


def _phase(state: DesiredState, problem: str, *, starting: bool) -> DeploymentPhase:
    if starting:
        return DeploymentPhase.STARTING
    if problem:
        return DeploymentPhase.DEGRADED
    return DeploymentPhase.SERVING if state.canary is None else DeploymentPhase.CANARY


def _revision(
    state: DesiredState, pinned: PinnedRevision, seen: GatewayStatus | None
) -> RevisionStatus:
    found = seen.find(pinned.name) if seen else None
    ready = found is not None and found.ready and found.bundle == pinned.bundle
    message = found.message if found else "not loaded"
    percent = state.percent_of(pinned.name)
    return RevisionStatus(pinned.name, pinned.bundle, ready, percent, message)


def _difference(state: DesiredState, seen: GatewayStatus | None) -> str:
    """What the gateway does differently from what it should, or nothing."""
    if seen is None:
        return "the gateway does not answer"
    for pinned in state.revisions:
        if not _revision(state, pinned, seen).ready:
            return f"revision {pinned.name} is not ready"
    canary = state.canary.name if state.canary else None
    percent = state.canary_percent if state.canary else 0
    wanted = (state.stable.name if state.stable else None, canary, percent)
    if (seen.traffic.stable, seen.traffic.canary, seen.traffic.percent) != wanted:
        return "the traffic is not split as it should be; reconcile sets it"
    return ""


def _history(state: DesiredState) -> str:
    if state.withdrawn is None:
        return ""
    return f"rolled back from {state.withdrawn.name}: {state.withdrawn.reason}"
