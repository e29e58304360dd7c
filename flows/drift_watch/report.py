"""A judged window as an Evidently report in the workspace, for people. It decides nothing."""

from __future__ import annotations

import logging

import numpy as np

from flows.drift_watch.judge import Look, comparable_parts, settings_of
from flows.drift_watch.watched import Watched
from validators.contracts.digest import short
from validators.drift.window import DriftWindow
from validators.watch.blur import blurred

_log = logging.getLogger(__name__)


def add_report(watched: Watched, look: Look, window: DriftWindow) -> None:
    """Store the report of a window, once. What goes wrong is logged: the verdict stands."""
    # Evidently takes seconds to import, which looks that judge nothing need not pay.
    from infra.workspaces.evidently import ReportWorkspace  # noqa: PLC0415
    from validators.drift.report import run_report  # noqa: PLC0415

    home, minimum = watched.workspace.home, settings_of(watched).minimum_samples
    try:
        parts = comparable_parts(watched.reference, window, minimum)
        with np.errstate(all="ignore"):  # Evidently correlates constant columns, too
            report = run_report(*blurred(*parts))
        if report is not None:
            folder = ReportWorkspace(home.folder("workspace"), home.folder("watch", "reports"))
            folder.add(watched.service, look.window, report)
    except Exception as error:  # another's renderer: anything may come out of it
        _log.warning("window %s has no report: %s", short(look.window), type(error).__name__)
