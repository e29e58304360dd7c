"""The flow that removes engines which nothing refers to, with their objects.

It is deployable as it stands (`flows/retain.py:retention`): its parameters and its answer are JSON.
"""

from __future__ import annotations

import os
from typing import Any

from prefect import flow

from flows.locks import exclusive
from flows.pruning import carry_out, plan
from flows.retention import sweep
from flows.workspace import Workspace
from infra.objects.folder import FolderStore
from validators.contracts.errors import BadInput

GRACE_HOURS = 24.0


@flow(name="retention", validate_parameters=False)
def retention(
    grace_hours: float = GRACE_HOURS, dry_run: bool = False, alone: bool = False
) -> dict[str, Any]:
    """Remove what no version, deployment or release record refers to; the answer as a document.

    Args:
        grace_hours: what is younger stays, so that nothing is taken from a release under way.
        dry_run: say what would go, and remove nothing.
        alone: no other machine writes to the store, so its objects may go as well as references.
            A store in a folder of this machine is always alone.

    Raises:
        Conflict: a release or a background build is writing.
        Refused, Unavailable: what is in use cannot be told; nothing was removed.
    """
    if not 0 <= grace_hours < 24 * 366:
        raise BadInput(
            f"a grace of {grace_hours} hours is none",
            where="grace_hours",
            remedy="Give 0 to 8783 hours.",
        )
    workspace, grace_ms = Workspace.open(), int(grace_hours * 3_600_000)
    with exclusive(workspace.home.lock("store"), "a release or a background build"):
        planned = plan(workspace, grace_ms)
        if not dry_run:
            carry_out(workspace, planned, grace_ms)
        ours = alone or isinstance(workspace.store, FolderStore)
        going = frozenset(planned.remove)
        swept = sweep(workspace.store, dry_run=dry_run, without=going).removed if ours else ()
    return {
        "dry_run": dry_run,
        "removed": planned.remove,
        "waiting": planned.waiting,
        "objects_removed": len(swept),
        "objects_left_to_others": not ours,
    }


def run_retention(grace_hours: float, *, dry_run: bool, alone: bool) -> dict[str, Any]:
    """The flow under the configured orchestrator, or as a plain function where there is none."""
    run = retention if os.environ.get("PREFECT_API_URL") else retention.fn
    return run(grace_hours, dry_run, alone)
