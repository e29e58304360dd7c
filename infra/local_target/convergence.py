"""From what a gateway serves to what it should serve, in an order that never loses traffic."""

from __future__ import annotations

from infra.local_target.admin import AdminClient, GatewayStatus, Traffic
from infra.local_target.desired import DesiredState, PinnedRevision


def load_missing(admin: AdminClient, state: DesiredState) -> None:
    """Load what is not loaded. The stable revision serves before a canary is tried.

    So a canary that cannot be loaded any more never keeps a restarted gateway from serving.
    """
    if state.stable is None:
        return
    seen = admin.status()
    if not _is_loaded(seen, state.stable):
        admin.load(state.stable)
    if seen.traffic.stable is None:
        admin.set_traffic(Traffic(state.stable.name, None, 0))
    if state.canary is not None and not _is_loaded(seen, state.canary):
        admin.load(state.canary)


def converge(admin: AdminClient, state: DesiredState) -> None:
    """Traffic first, then what no longer serves is drained and unloaded."""
    if state.stable is None:
        return
    canary = state.canary.name if state.canary else None
    wanted = Traffic(state.stable.name, canary, state.canary_percent if canary else 0)
    seen = admin.status()
    if seen.traffic != wanted:
        admin.set_traffic(wanted)
    kept = {revision.name for revision in state.revisions}
    for revision in seen.revisions:
        if revision.name not in kept:
            admin.unload(revision.name)


def _is_loaded(seen: GatewayStatus, revision: PinnedRevision) -> bool:
    known = seen.find(revision.name)
    return known is not None and known.ready and known.bundle == revision.bundle
