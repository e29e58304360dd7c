"""Alerts to an address of the user's own: one signed JSON document a message."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from infra.alerts.posting import DEADLINE_S, post, require_receiver
from infra.alerts.signature import sign
from validators.contracts.alerts import Alert
from validators.contracts.digest import canonical_json, plain
from validators.contracts.ports import Clock

WEBHOOK_FORMAT = 1


class WebhookSink:
    """Posts `{format, id, fingerprint, alert}`, signed as `infra.alerts.signature` says."""

    name = "webhook"

    def __init__(
        self, url: str, secrets: Sequence[bytes], clock: Clock, *, deadline_s: float = DEADLINE_S
    ) -> None:
        self._url = require_receiver(url)
        self._secrets = tuple(secrets)
        self._clock = clock
        self._deadline_s = deadline_s

    def deliver(self, alert: Alert) -> None:
        body = webhook_document(alert)
        now_s = self._clock.wall_ns() // 1_000_000_000
        headers = {"content-type": "application/json"} | sign(self._secrets, alert.id, body, now_s)
        post(self._url, body, headers, deadline_s=self._deadline_s)


def webhook_document(alert: Alert) -> bytes:
    """What is posted: labels as an object, times in milliseconds since the epoch."""
    fields = {item.name: plain(getattr(alert, item.name)) for item in dataclasses.fields(alert)}
    return canonical_json(
        {
            "format": WEBHOOK_FORMAT,
            "id": alert.id,
            "fingerprint": alert.fingerprint,
            "alert": {**fields, "labels": dict(alert.labels)},
        }
    )
