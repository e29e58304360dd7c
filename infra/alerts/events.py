"""Alerts as events of the orchestrator, which its automations act on.

The event is posted rather than emitted: a post returns when the server has it. Its id is made from
the message's, so that the server keeps one where it is posted twice.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime

from infra.alerts.posting import DEADLINE_S, post
from validators.contracts.alerts import Alert, AlertState
from validators.contracts.digest import canonical_json

ALARM, RESOLVED = "modalgate.drift.alarm", "modalgate.drift.resolved"


class EventSink:
    """Posts to `<PREFECT_API_URL>/events`."""

    name = "events"

    def __init__(
        self, api_url: str, authorization: str | None = None, *, deadline_s: float = DEADLINE_S
    ) -> None:
        self._url = api_url.rstrip("/") + "/events"
        self._headers = {"content-type": "application/json"}
        if authorization:
            self._headers["authorization"] = authorization
        self._deadline_s = deadline_s

    def deliver(self, alert: Alert) -> None:
        body = canonical_json([event_document(alert)])
        post(self._url, body, self._headers, deadline_s=self._deadline_s)


def event_document(alert: Alert) -> dict[str, object]:
    """The alert as an event about `modalgate.service.<service>`."""
    labels = dict(alert.labels)
    return {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, alert.id)),
        "event": ALARM if alert.state is AlertState.FIRING else RESOLVED,
        "occurred": datetime.fromtimestamp(alert.told_ms / 1e3, UTC).isoformat(),
        "resource": {
            "prefect.resource.id": resource_of(labels.get("service", "")),
            "prefect.resource.name": labels.get("service", ""),
            "modalgate.reminder": str(alert.told_ms > alert.started_ms).lower(),
        },
        "related": [],
        "payload": {**labels, "summary": alert.summary, "remedy": alert.remedy},
    }


def resource_of(service: str) -> str:
    """How events name a service."""
    return f"modalgate.service.{service}"


def authorization_of(environment: Mapping[str, str]) -> str | None:
    """The header that the orchestrator's own settings ask for."""
    if key := environment.get("PREFECT_API_KEY", "").strip():
        return f"Bearer {key}"
    if words := environment.get("PREFECT_API_AUTH_STRING", "").strip():
        return f"Basic {base64.b64encode(words.encode()).decode()}"
    return None
