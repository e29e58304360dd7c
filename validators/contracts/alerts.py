"""Alerts: what people are told, and the port that tells them.

An alert is named by what it is about (`fingerprint`), so that its reminders and its end belong to
it; each message about it has a name of its own (`id`), by which a receiver knows one it had
already. Names and labels hold identifiers only: nothing that a caller wrote gets into an alert.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Protocol

from validators.contracts.digest import Digest, digest_value
from validators.contracts.errors import BadInput

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+-]{0,127}")
MAX_LABELS = 16
MAX_TEXT = 1000


class AlertState(enum.Enum):
    FIRING = "firing"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Alert:
    """One message about one alarm.

    Attributes:
        labels: what it is about, sorted by name: service, feature; part of its identity.
        summary: a sentence with the figures.  remedy: what to do, an imperative sentence.
        started_ms: when the alarm began.  told_ms: when this message was decided.
        until_ms: when it no longer holds by itself, should nothing more be heard (wall times).
    """

    name: str
    severity: str  # "warning", "critical"
    labels: tuple[tuple[str, str], ...]
    summary: str
    remedy: str
    state: AlertState
    started_ms: int
    told_ms: int
    until_ms: int

    def __post_init__(self) -> None:
        named = [self.name, self.severity, *(name for name, _ in self.labels)]
        sound = (
            all(_NAME.fullmatch(name) for name in named)
            and all(_VALUE.fullmatch(value) for _, value in self.labels)
            and len(self.labels) <= MAX_LABELS
            and list(self.labels) == sorted(dict(self.labels).items())
            and max(len(self.summary), len(self.remedy)) <= MAX_TEXT
        )
        if not sound:
            raise BadInput(
                "an alert's name, labels or texts cannot be used",
                where=self.name[:64],
                remedy="Name things by identifiers, sorted, and keep texts short.",
            )

    @property
    def fingerprint(self) -> Digest:
        """The same for every message about the same thing."""
        return digest_value("alert", {"name": self.name, "labels": self.labels})

    @property
    def id(self) -> Digest:
        """Of this message: it may arrive twice, and is then the same one."""
        return digest_value("alert-message", self)


class AlertSink(Protocol):
    """Somewhere that alerts are told. Telling one twice is harmless: it has one id."""

    @property
    def name(self) -> str:
        """A short name, for folders and metrics: "alertmanager", "webhook"."""
        ...

    def deliver(self, alert: Alert) -> None:
        """Returns once the receiver has it.

        Raises:
            Unavailable: it is away, slow or overloaded: worth another try.
            Refused, BadInput: it will never take this message as it is.
        """
        ...
