"""What a look at one service needs: the live version, what it was made from, rules and places."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from flows.drift_watch.places import STATE_FILE
from flows.release.bundle import find
from flows.release.register import CHAMPION, record_of
from flows.release.values import ReleaseRecord
from flows.workspace import Workspace
from infra.alerts.open import open_sinks
from infra.alerts.outbox import Outbox
from infra.windows import WindowFolder
from validators.contracts.alerts import AlertSink
from validators.contracts.bundle import Bundle
from validators.contracts.documents import load
from validators.contracts.errors import NotFound
from validators.contracts.pipeline import Pipeline
from validators.contracts.ports import ModelVersion
from validators.drift.window import DriftWindow
from validators.drift.window_file import read_window
from validators.lineage.record import read_summary
from validators.lineage.summary import LineageSummary
from validators.watch.alarm import AlarmRule


@dataclass(frozen=True)
class Watched:
    """One service with its live version."""

    workspace: Workspace
    version: ModelVersion

    @staticmethod
    def open(workspace: Workspace, service: str) -> Watched:
        """Raises NotFound where nothing of the service is live."""
        version = workspace.registry.alias(service, CHAMPION)
        if version is None:
            raise NotFound(
                f"no version of {service!r} is live", where=service,
                remedy="Release it first: modalgate release pipeline.yaml",
            )  # fmt: skip
        return Watched(workspace, version)

    @property
    def service(self) -> str:
        return self.version.model

    @cached_property
    def record(self) -> ReleaseRecord:
        return record_of(self.workspace, self.version.bundle)

    @cached_property
    def bundle(self) -> Bundle:
        return find(self.workspace, self.version.bundle)

    @cached_property
    def pipeline(self) -> Pipeline:
        digest = self.record.pipeline
        return load(Pipeline, self.workspace.store.get(digest), where=digest)

    @cached_property
    def reference(self) -> DriftWindow:
        """The window of the data that the live version was made from."""
        return read_window(self.workspace.store.get(self.record.window))

    @cached_property
    def lineage(self) -> LineageSummary:
        digest = self.record.lineage
        return read_summary(self.workspace.store.get(digest), where=digest)

    @property
    def rule(self) -> AlarmRule:
        alerts = self.pipeline.alerts
        return AlarmRule(alerts.windows, alerts.drifted, round(alerts.cooldown_s * 1e3))

    @cached_property
    def windows(self) -> WindowFolder:
        return self.workspace.windows(self.service)

    @property
    def state_file(self) -> Path:
        return self.workspace.home.folder("watch", self.service) / STATE_FILE

    @cached_property
    def outbox(self) -> Outbox:
        folder = self.workspace.home.folder("watch", self.service, "outbox")
        return Outbox(folder, self.workspace.clock)

    @cached_property
    def sinks(self) -> list[AlertSink]:
        """Raises BadInput where a sink is configured wrongly."""
        return open_sinks(self.pipeline.alerts, os.environ, self.workspace.clock)

    @property
    def now_ms(self) -> int:
        return self.workspace.clock.wall_ns() // 1_000_000
