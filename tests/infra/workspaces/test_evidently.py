"""Reports where Evidently's pages find them: each once, a bounded number, without rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from evidently import DataDefinition, Dataset, Report
from evidently.core.report import Snapshot
from evidently.presets import DataDriftPreset
from evidently.ui.workspace import Workspace

from infra.workspaces.evidently import ReportWorkspace
from validators.contracts.digest import digest_bytes

WINDOWS = [digest_bytes(bytes([number])) for number in range(6)]


@pytest.fixture(scope="module")
def report() -> Snapshot:
    frame = pd.DataFrame({"brightness": np.random.default_rng(3).normal(size=80)})
    data = Dataset.from_pandas(frame, DataDefinition(numerical_columns=["brightness"]))
    return Report([DataDriftPreset()]).run(data, data)


@pytest.fixture
def workspace(tmp_path: Path) -> ReportWorkspace:
    return ReportWorkspace(tmp_path / "workspace", tmp_path / "index", kept=3)


def test_a_report_is_stored_once(workspace: ReportWorkspace, report: Snapshot) -> None:
    assert workspace.add("shop", WINDOWS[0], report)
    assert not workspace.add("shop", WINDOWS[0], report)
    assert workspace.add("other", WINDOWS[0], report)
    assert workspace.reports("shop") == WINDOWS[:1]


def test_the_oldest_reports_go(
    workspace: ReportWorkspace, report: Snapshot, tmp_path: Path
) -> None:
    for window in WINDOWS:
        workspace.add("shop", window, report)
    assert workspace.reports("shop") == WINDOWS[3:]
    stored = Workspace.create(str(tmp_path / "workspace"))
    (project,) = stored.search_project("shop")
    assert len(stored.list_runs(project.id)) == 3
    names = [path.name for path in (tmp_path / "workspace").rglob("*") if path.is_file()]
    assert sorted(names)[-1] == "metadata.json"
    assert not [name for name in names if "dataset" in name or name.endswith(".parquet")]


def test_what_a_killed_process_left_is_swept(
    workspace: ReportWorkspace, report: Snapshot, tmp_path: Path
) -> None:
    workspace.add("shop", WINDOWS[0], report)
    (tmp_path / "index" / "reports.json").unlink()
    assert workspace.add("shop", WINDOWS[0], report)
    stored = Workspace.create(str(tmp_path / "workspace"))
    (project,) = stored.search_project("shop")
    assert len(stored.list_runs(project.id)) == 1
