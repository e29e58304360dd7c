"""The matrix as an artifact: found again, and readable."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.compatibility.artifact import JSON, Report, cell_text, keep_report, markdown, report_of
from flows.home import Home
from flows.workspace import Workspace
from tests.validators.compatibility.test_matrix import CRASHED, INCIDENT, matrix
from validators.contracts.errors import NotFound
from validators.contracts.verdict import conclude


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.delenv("MODALGATE_STORE", raising=False)
    return Workspace(Home(tmp_path))


def report(service: str = "shop") -> Report:
    return Report(service, conclude("compatibility", [], examined=1), (matrix(),))


def test_a_report_is_found_again_by_its_service_and_the_newest_stands(workspace: Workspace) -> None:
    with pytest.raises(NotFound):
        report_of(workspace, "shop")
    first = keep_report(workspace, report())
    assert keep_report(workspace, report()) == first
    newer = Report("shop", report().verdict, (matrix({**INCIDENT, (1, 1): CRASHED}),))
    assert keep_report(workspace, newer) != first
    assert report_of(workspace, "shop") == newer
    assert (workspace.home.folder("evidence", "shop") / JSON).is_file()


def test_the_page_has_each_cell_with_its_interval_and_the_way_out() -> None:
    page = markdown([matrix()])
    assert "| text 2.1.0 | BLOCK; fp16: 311 of 320 broken (94.7% to 98.5%) |" in page
    assert "Take vision 1.8.4 in place of 1.8.3 beside text 2.1.0." in page


def test_a_crashed_cell_says_how_it_ended() -> None:
    made = matrix({**INCIDENT, (0, 1): CRASHED})
    assert cell_text(made.cell(0, 1)).startswith("ERROR; died of SIGSEGV")
