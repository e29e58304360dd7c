"""The drift watch by the orchestrator: one look at a service, or at every live one.

What a look finds is told by alerts, metrics and documents; the run itself fails only where it could
not look. A service that cannot be looked at does not keep the others from it.
"""

from __future__ import annotations

from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from flows.compatibility.schedule import live_services
from flows.drift_watch.look import Looked, look
from flows.drift_watch.report import add_report
from flows.drift_watch.watched import Watched
from flows.workspace import Workspace
from validators.contracts.errors import Conflict, ModalgateError, NotFound


@task(name="look", cache_policy=NO_CACHE, persist_result=False)
def look_at(service: str) -> dict[str, Any]:
    """One look at one service, as a document."""
    watched = Watched.open(Workspace.open(), service)
    try:
        return document_of(watched.service, look(watched, add_report))
    except Conflict as busy:  # the other one sees the same windows
        return {"service": service, "skipped": busy.what}


@flow(name="drift_watch", validate_parameters=False)
def drift_watch(service: str | None = None) -> dict[str, Any]:
    """Look at a service, or at every live one; the answer as one document.

    Args:
        service: as in the pipeline file; None: every service that is live.

    Raises:
        NotFound: nothing is live.  ModalgateError: the first that kept a service from being
            looked at; the others were.
    """
    names = [service] if service else live_services(Workspace.open())
    if not names:
        raise NotFound(
            "nothing is live", where="drift_watch",
            remedy="Release something: modalgate release FILE",
        )  # fmt: skip
    documents, stopped = [], None
    for name in names:
        try:
            documents.append(look_at(name))
        except ModalgateError as error:
            documents.append({"service": name, "error": error.document()})
            stopped = stopped or error
    document: dict[str, Any] = {"services": documents}
    if stopped is not None:
        stopped.attachment = document
        raise stopped
    return document


def document_of(service: str, looked: Looked) -> dict[str, Any]:
    """What came of a look, for people and for `--json`."""
    state = looked.state
    return {
        "service": service,
        "outcome": state.outcome.value,
        "message": state.message,
        "alarm": state.alarm.firing,
        "told": [item.value for item in looked.told],
        "waiting_rows": state.waiting_rows,
        "windows": [
            {"window": made.window, "outcome": made.outcome.value, "rows": made.rows}
            for made in looked.looks
        ],
        "findings": [
            {
                "finding": item.name, "outcome": item.outcome.value, "measured": item.measured,
                "limit": item.limit, "remedy": item.remedy,
            }
            for item in looked.findings
        ],
        "sinks": [
            {
                "sink": item.sink, "sent": item.sent, "waiting": item.waiting,
                "given_up": item.given_up, "problem": item.problem,
            }
            for item in looked.delivered
        ],
    }  # fmt: skip
