"""Evidently's pictures of two windows: it computes and renders, our rule judges.

On a bounded sample, without network and without telemetry: Evidently reports usage from its UI
service only, and never where DO_NOT_TRACK is set, which importing this module sees to. Importing it
takes seconds: import it where a report is made, not beside the gate.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

os.environ.setdefault("DO_NOT_TRACK", "1")

import pandas as pd
from evidently import DataDefinition, Dataset, Report
from evidently.core.report import Snapshot
from evidently.metrics.embeddings import EmbeddingsDrift
from evidently.presets import DataDriftPreset

from validators.drift.columns import ABSENT, Categories, Embedded, Scalars
from validators.drift.detectors import principal
from validators.drift.joining import Siblings, comparable
from validators.drift.window import DriftWindow, sample

SAMPLE_ROWS = 500
MAX_REPORT_COLUMNS = 40
EMBEDDING_SIZE = 16
"""Leading principal coordinates that stand for an embedding in the report."""


@dataclass(frozen=True, slots=True)
class RenderedReport:
    """The report as documents for people (`html`) and machines (`json`)."""

    json: bytes
    html: bytes


def render_report(
    reference: DriftWindow, current: DriftWindow, *, siblings: Siblings = ()
) -> RenderedReport | None:
    """Both forms of the report, or None where the windows have nothing in common."""
    snapshot = run_report(reference, current, siblings=siblings)
    if snapshot is None:
        return None
    html = snapshot.get_html_str(as_iframe=False)
    figures = json.loads(snapshot.json(), parse_constant=lambda _: None)  # no NaN in JSON of ours
    return RenderedReport(json.dumps(figures, allow_nan=False).encode(), html.encode())


def run_report(
    reference: DriftWindow, current: DriftWindow, *, siblings: Siblings = ()
) -> Snapshot | None:
    """Evidently's run over common columns, as its workspaces keep it (`workspace.add_run`).

    Descriptors, categories and lineage tags as columns; vectors of one encoder version by their
    leading principal coordinates.
    """
    windows = [sample(item, SAMPLE_ROWS) for item in (reference, current)]
    numbers = _common(windows, "descriptors")
    words = _common(windows, "categories")
    tags = _common(windows, "tags")
    chosen = [*numbers, *words, *(f"tag.{name}" for name in tags)][:MAX_REPORT_COLUMNS]
    frames = [_frame(window, numbers, words, tags)[chosen] for window in windows]
    embeddings = _embeddings(windows, siblings)
    metrics = [EmbeddingsDrift(embeddings_name=name) for name in embeddings]
    if not chosen and not metrics:
        return None
    for name, pair in embeddings.items():
        parts = [pd.DataFrame(part, columns=_coordinates(name, part)) for part in pair]
        frames = [pd.concat(both, axis=1) for both in zip(frames, parts, strict=True)]
    definition = DataDefinition(
        numerical_columns=[name for name in chosen if name in numbers],
        categorical_columns=[name for name in chosen if name not in numbers],
        embeddings={name: _coordinates(name, pair[0]) for name, pair in embeddings.items()} or None,
    )
    before, now = (Dataset.from_pandas(frame, data_definition=definition) for frame in frames)
    preset = [DataDriftPreset(columns=chosen)] if chosen else []
    return Report([*preset, *metrics]).run(now, before)


def _common(windows: list[DriftWindow], kind: str) -> list[str]:
    """Names that both windows have, with a value in each."""
    one, other = (window.columns()[kind] for window in windows)
    return [name for name in sorted({*one} & {*other}) if _some(one[name]) and _some(other[name])]


def _some(column: Scalars | Categories | Embedded) -> bool:
    if isinstance(column, Categories):
        return bool((column.codes != ABSENT).any())
    return isinstance(column, Scalars) and bool(column.present.any())


def _frame(
    window: DriftWindow, numbers: list[str], words: list[str], tags: list[str]
) -> pd.DataFrame:
    columns: dict[str, npt.NDArray[np.object_] | npt.NDArray[np.float64]] = {}
    for name in numbers:
        scalars = window.descriptors[name]
        columns[name] = np.where(scalars.present, scalars.values, np.nan)
    columns |= {name: _words(window.categories[name]) for name in words}
    columns |= {f"tag.{name}": _words(window.tags[name]) for name in tags}
    return pd.DataFrame(columns, index=range(window.rows))


def _words(column: Categories) -> npt.NDArray[np.object_]:
    return np.array([*column.vocabulary, None], dtype=object)[column.codes]


def _embeddings(
    windows: list[DriftWindow], siblings: Siblings
) -> dict[str, tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]:
    """Leading coordinates of modalities that every row of both samples has."""
    found = {}
    reference, current = windows
    for name in sorted({*reference.embeddings} & {*current.embeddings}):
        one, other = reference.embeddings[name], current.embeddings[name]
        whole = len(one) == reference.rows and len(other) == current.rows
        if not whole or not len(one) or not len(other) or not comparable(one, other, siblings):
            continue
        pooled = np.concatenate([one.vectors, other.vectors])
        scores, _ = principal(pooled, EMBEDDING_SIZE, 0)
        found[name] = scores[: len(one)], scores[len(one) :]
    return found


def _coordinates(name: str, part: npt.NDArray[np.float32]) -> list[str]:
    return [f"{name}[{place}]" for place in range(part.shape[1])]
