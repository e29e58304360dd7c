"""Evidently over two windows. Imported when a report is made, since that takes seconds."""

from __future__ import annotations

import pandas as pd
from evidently import DataDefinition, Dataset, Report
from evidently.presets import DataDriftPreset

from flows.drift_watch.judge import Look
from flows.drift_watch.report import frame_of
from flows.drift_watch.watched import Watched
from infra.workspaces.evidently import ReportWorkspace
from validators.drift.window import DriftWindow


def store_report(watched: Watched, look: Look, reference: DriftWindow, window: DriftWindow) -> None:
    """Descriptors of the live window beside the reference's, with Evidently's own tests."""
    before, now = frame_of(reference), frame_of(window)
    names = sorted({*before} & {*now})
    if not names:
        return
    definition = DataDefinition(numerical_columns=names)
    parts = [
        Dataset.from_pandas(pd.DataFrame({name: part[name] for name in names}), definition)
        for part in (now, before)
    ]
    report = Report([DataDriftPreset()], metadata={"window": look.window}).run(*parts)
    home = watched.workspace.home
    folder = ReportWorkspace(home.folder("workspace"), home.folder("watch", "reports"))
    folder.add(watched.service, look.window, report)
