"""The shape of the `alerts` section of the user's file: when live drift alarms, whom it tells."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from validators.contracts.pipeline_keys import RECEIVER, Section, key

Receiver = Annotated[str, Field(pattern=RECEIVER, max_length=2048)]


class AlertsSection(Section):
    """When drift in live traffic alarms, whom it tells and what follows from it."""

    windows: int = key("Windows that an alarm looks back on.", 3, ge=1, le=100)
    drifted: int = key("So many of them have to have drifted; at most windows.", 2, ge=1, le=100)
    cooldown_s: float = key(
        "An alarm that goes on is told again after this time.", 3600.0, unit="s", ge=60
    )
    alertmanager: Receiver | None = key(
        "Address of an Alertmanager; MODALGATE_ALERTMANAGER replaces it.", None
    )
    webhook: Receiver | None = key(
        "Address that signed alerts are posted to; MODALGATE_ALERT_WEBHOOK replaces it. The secret "
        "is in MODALGATE_ALERT_SECRET, never in this file.",
        None,
    )
    on_alarm: Literal["rebuild", "review", "none"] = key(
        "What an alarm starts: a release of this file, which then waits for its review; a request "
        "for a review of the live version; or nothing.",
        "review",
    )
