"""Alerts to Prometheus' Alertmanager, by its API v2.

Alertmanager groups, silences and repeats by itself. An alert that nobody confirms ends at its
`endsAt`, so that a watch that died does not alarm for ever.
"""

from __future__ import annotations

from datetime import UTC, datetime

from infra.alerts.posting import DEADLINE_S, post, require_receiver
from validators.contracts.alerts import Alert, AlertState
from validators.contracts.digest import canonical_json


class AlertmanagerSink:
    """Posts to `<url>/api/v2/alerts`."""

    name = "alertmanager"

    def __init__(self, url: str, *, deadline_s: float = DEADLINE_S) -> None:
        self._url = require_receiver(url).rstrip("/") + "/api/v2/alerts"
        self._deadline_s = deadline_s

    def deliver(self, alert: Alert) -> None:
        body = canonical_json([alertmanager_document(alert)])
        headers = {"content-type": "application/json"}
        post(self._url, body, headers, deadline_s=self._deadline_s)


def alertmanager_document(alert: Alert) -> dict[str, object]:
    """The alert as Alertmanager's `postableAlert`."""
    ends_ms = alert.told_ms if alert.state is AlertState.RESOLVED else alert.until_ms
    return {
        "labels": {"alertname": alert.name, "severity": alert.severity, **dict(alert.labels)},
        "annotations": {"summary": alert.summary, "remedy": alert.remedy},
        "startsAt": _time(alert.started_ms),
        "endsAt": _time(max(ends_ms, alert.started_ms + 1)),
    }


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1e3, UTC).isoformat(timespec="milliseconds")
