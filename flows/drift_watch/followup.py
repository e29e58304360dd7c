"""What an alarm starts, as flows that an automation runs."""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows.drift_watch.explain import explain_service
from flows.drift_watch.watched import Watched
from flows.workspace import Workspace

ACTOR, ACTION, TAG = "drift-watch", "request-review", "modalgate.drift"


@flow(name="drift_review", validate_parameters=False)
def drift_review(service: str) -> dict[str, Any]:
    """Ask people to look at the live version: an entry in the ledger, and a tag on the version.

    Asked once for each alarm, however often the flow runs.
    """
    workspace = Workspace.open()
    watched = Watched.open(workspace, service)
    state = explain_service(workspace, service)
    since = str(state["alarm_since_ms"] or 0)
    asked = watched.version.tags.get(TAG) == since
    if not asked:
        workspace.ledger.append(
            actor=ACTOR,
            action=ACTION,
            model=service,
            version=watched.version.version,
            reason="live traffic drifts from what this version was made from",
            details={"alarm_since_ms": since, "bundle": watched.version.bundle},
        )
        workspace.registry.set_tags(service, watched.version.version, {TAG: since})
    return {"service": service, "version": watched.version.version, "asked": not asked}
