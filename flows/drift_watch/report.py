"""A judged window as an Evidently report in the workspace, for people. It decides nothing."""

from __future__ import annotations

import logging

import numpy as np

from flows.drift_watch.judge import Look
from flows.drift_watch.watched import Watched
from validators.drift.window import DriftWindow, sample
from validators.watch.ready import only, samples_of

MAX_ROWS = 1000
"""Of either window; rendering takes most of the time."""

_log = logging.getLogger(__name__)


def add_report(watched: Watched, look: Look, window: DriftWindow) -> None:
    """Store the report of a window, once. What goes wrong is logged: the verdict stands."""
    from flows.drift_watch.rendering import store_report  # noqa: PLC0415 takes seconds to import

    reference = only(watched.reference, samples_of(window))
    try:
        store_report(watched, look, sample(reference, MAX_ROWS), sample(window, MAX_ROWS))
    except Exception as error:  # another's renderer: anything may come out of it
        _log.warning("window %s has no report: %s", look.window[7:19], type(error).__name__)


def frame_of(window: DriftWindow) -> dict[str, np.ndarray]:
    """Descriptors as columns, NaN where a row has none."""
    return {
        name: np.where(column.present, column.values, np.nan)
        for name, column in sorted(window.descriptors.items())
    }
