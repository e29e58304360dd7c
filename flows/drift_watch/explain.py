"""Why a window was judged as it was, and what the watch knows of a service."""

from __future__ import annotations

from typing import Any

from flows.drift_watch.documents import look_of
from flows.drift_watch.judge import Look
from flows.drift_watch.places import STATE_FILE, read_state
from flows.workspace import Workspace
from validators.contracts.digest import Digest, hex_of
from validators.contracts.errors import BadInput, NotFound
from validators.watch.state import WatchState

MIN_PREFIX = 6
SHOWN = 10


def explain_service(workspace: Workspace, service: str) -> dict[str, Any]:
    """The state of the watch, the latest windows, and why the last one came out as it did.

    Raises:
        NotFound: no watch has looked at the service yet.
    """
    state = _state(workspace, service)
    document: dict[str, Any] = {
        "service": service,
        "outcome": state.outcome.value,
        "message": state.message,
        "alarm": state.alarm.firing,
        "alarm_since_ms": state.alarm.since_ms,
        "history": [item.value for item in state.alarm.history],
        "waiting_rows": state.waiting_rows,
        "windows_judged": state.windows_judged,
        "windows_refused": state.windows_refused,
        "windows_damaged": state.windows_damaged,
        "judged": list(reversed(state.judged[-SHOWN:])),
    }
    if state.judged:
        document["look"] = look_of(workspace, service, state.judged[-1].window)
    return document


def explain_window(workspace: Workspace, service: str, window: str) -> dict[str, Any]:
    """Why a judged window came out as it did; the first digits of its digest are enough.

    Raises:
        NotFound: no such window was judged.  BadInput: several begin so.
    """
    look: Look = look_of(workspace, service, _whole(workspace, service, window))
    return {"service": service, "look": look}


def _whole(workspace: Workspace, service: str, window: str) -> Digest:
    digits = window.removeprefix("sha256:").lower()
    if len(digits) < MIN_PREFIX:
        raise BadInput(
            f"{window[:80]!r} is too short for a window's name", where="--window",
            remedy=f"Give {MIN_PREFIX} of its digits at least.",
        )  # fmt: skip
    known = [item.window for item in _state(workspace, service).judged]
    found = [item for item in known if hex_of(item).startswith(digits)]
    if len(found) > 1:
        raise BadInput("several windows begin so", where=window[:80], remedy="Give more digits.")
    if not found:
        raise NotFound(
            "no such window was judged", where=f"{service} {window[:80]}",
            remedy=f"List them: modalgate drift explain {service}",
        )  # fmt: skip
    return found[0]


def _state(workspace: Workspace, service: str) -> WatchState:
    path = workspace.home.root / "watch" / service / STATE_FILE
    if not path.exists():
        raise NotFound(
            f"no watch has looked at {service!r} yet", where=service,
            remedy=f"Look once: modalgate drift watch {service} --once",
        )  # fmt: skip
    return read_state(path, service)
