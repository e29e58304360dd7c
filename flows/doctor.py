"""What works on this machine: backends, and every dependency tried for real."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

from flows.workspace import Workspace
from services.engines.backends.catalogue import backends
from validators.contracts.errors import ModalgateError

MINIMUM_FREE_BYTES = 2 * 2**30


@dataclass(frozen=True, slots=True)
class Health:
    """`healthy` was tried, not assumed; `reason` says what was done or what is wrong."""

    healthy: bool
    reason: str
    remedy: str = ""


def examine_backends() -> dict[str, dict[str, object]]:
    """Each backend by name: `available` (builds here), `can_run`, and the reason."""
    found: dict[str, dict[str, object]] = {}
    for backend in backends():
        state = backend.probe()
        found[backend.name] = {
            "available": state.available,
            "can_run": state.can_run,
            "version": state.version,
            "reason": state.reason,
        }
    return found


def examine_dependencies(workspace: Workspace) -> dict[str, Health]:
    """The state folder, store, keys, ledger, registry, orchestrator and reference data."""
    checks: dict[str, Callable[[Workspace], str]] = {
        "state": _state,
        "store": _store,
        "keys": _keys,
        "ledger": _ledger,
        "registry": _registry,
        "orchestrator": _orchestrator,
    }
    return {name: _try(check, workspace) for name, check in checks.items()}


def _try(check: Callable[[Workspace], str], workspace: Workspace) -> Health:
    try:
        return Health(True, check(workspace))
    except ModalgateError as error:
        return Health(False, error.what, error.remedy)


def _state(workspace: Workspace) -> str:
    folder = workspace.home.folder()
    free = shutil.disk_usage(folder).free
    if free < MINIMUM_FREE_BYTES:
        raise ModalgateError(
            f"{free / 2**30:.1f} GiB are free at {folder}",
            remedy="Free some disk space, or set MODALGATE_HOME to another folder.",
        )
    return f"{folder}, {free / 2**30:.0f} GiB free"


def _store(workspace: Workspace) -> str:
    content = b"doctor"
    digest = workspace.store.put(content)
    if workspace.store.get(digest) != content:
        raise ModalgateError("the store does not give back what it was given")
    workspace.store.delete(digest)
    return f"wrote, read and removed an object ({type(workspace.store).__name__})"


def _keys(workspace: Workspace) -> str:
    workspace.verifier.verify(b"doctor", workspace.signer.sign(b"doctor"))
    return f"signed and verified, key {workspace.signer.key_id[7:19]}"


def _ledger(workspace: Workspace) -> str:
    return f"{workspace.ledger.verify()} entries, the chain holds"


def _registry(workspace: Workspace) -> str:
    workspace.registry.alias("doctor", "champion")
    return "answers"


def _orchestrator(workspace: Workspace) -> str:
    url = os.environ.get("PREFECT_API_URL")
    return f"Prefect {version('prefect')}, " + (f"server {url}" if url else "embedded server")
