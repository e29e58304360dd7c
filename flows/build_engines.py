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
    }
