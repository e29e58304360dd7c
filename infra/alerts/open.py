"""The sinks that a pipeline and the environment ask for."""

from __future__ import annotations

from collections.abc import Mapping

from infra.alerts.alertmanager import AlertmanagerSink
from infra.alerts.events import EventSink, authorization_of
from infra.alerts.signature import secrets_of
from infra.alerts.webhook import WebhookSink
from validators.contracts.alerts import AlertSink
from validators.contracts.pipeline import AlertSettings
from validators.contracts.ports import Clock

ALERTMANAGER, WEBHOOK = "MODALGATE_ALERTMANAGER", "MODALGATE_ALERT_WEBHOOK"
SECRET = "MODALGATE_ALERT_SECRET"


def open_sinks(
    settings: AlertSettings, environment: Mapping[str, str], clock: Clock
) -> list[AlertSink]:
    """Every sink that is configured; the environment's addresses replace the file's.

    Raises:
        BadInput: an address that alerts may not go to, or a webhook without a secret.
    """
    sinks: list[AlertSink] = []
    if url := _setting(environment, ALERTMANAGER) or settings.alertmanager:
        sinks.append(AlertmanagerSink(url))
    if url := _setting(environment, WEBHOOK) or settings.webhook:
        sinks.append(WebhookSink(url, secrets_of(environment.get(SECRET, "")), clock))
    if url := _setting(environment, "PREFECT_API_URL"):
        sinks.append(EventSink(url, authorization_of(environment)))
    return sinks


def _setting(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name, "").strip()
