"""The flow that works off the queue of background builds.

It is deployable as it stands (`flows/build_engines.py:build_engines`): its parameters and its
answer are JSON. Where no orchestrator is configured, none is started for it.
"""

from __future__ import annotations

import os
from typing import Any

from prefect import flow

from flows.builds.drain import EndedBuild, drain
from flows.interruption import interruptible, told_to_end
from flows.workspace import Workspace
from validators.contracts.builds import BuildState
from validators.contracts.errors import Blocked, Unavailable


@flow(name="build-engines", validate_parameters=False)
def build_engines() -> dict[str, Any]:
    """Build, verify and install an engine for every request that waits; the answer as a document.

    Raises:
        Conflict: another process works off this state folder's queue.
    """
    workspace = Workspace.open()
    with interruptible():
        ended = drain(workspace, told_to_end)
    return {"builds": [_row(item) for item in ended]}


def run_build_engines() -> dict[str, Any]:
    """The flow under the configured orchestrator, or as a plain function where there is none."""
    run = build_engines if os.environ.get("PREFECT_API_URL") else build_engines.fn
    return run()


def require_built(document: dict[str, Any]) -> dict[str, Any]:
    """The document, where every request in it ended in an engine at its last try.

    Raises:
        Blocked: parity stopped one.  Unavailable: one waits again, or failed for another reason.
            Both carry the document.
    """
    last = {row["key"]: row for row in document["builds"]}
    missing = [row for row in last.values() if row["state"] != BuildState.DONE.value]
    if not missing:
        return document
    waiting = sum(row["state"] == BuildState.WAITING.value for row in missing)
    kind = Blocked if any(row["blocked"] for row in missing) else Unavailable
    error = kind(
        f"{len(missing)} of {len(last)} requests ended without an engine, {waiting} of them wait",
        where=", ".join(sorted({f"{row['service']} {row['encoder']}" for row in missing})),
        remedy="Remove the reason named with each, then: modalgate engines build --retry.",
    )
    error.attachment = document
    raise error


def _row(ended: EndedBuild) -> dict[str, Any]:
    request = ended.request
    return {
        "key": request.key,
        "service": request.service,
        "encoder": request.encoder,
        "sizes": dict(request.sizes),
        "state": ended.state.value,
        "message": ended.message,
        "live": ended.live,
        "blocked": ended.blocked,
    }
