from __future__ import annotations

from pathlib import Path

import pytest

from infra.objects.folder import FolderStore
from services.ingest.folder import ingest_folder
from tests.scenarios.gates.data_sets import build
from validators.contracts.verdict import GatePolicy, Outcome
from validators.quality.ingest import assess_ingest

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("name", "outcome", "unreadable"),
    [
        ("blocks", Outcome.FAIL, {("torn", "corrupt-image"), ("silent", "empty-audio")}),
        ("passes", Outcome.WARN, {("torn", "corrupt-image")}),
    ],
)
def test_two_torn_rows_of_twenty_block_and_one_just_passes(
    tmp_path: Path, name: str, outcome: Outcome, unreadable: set[tuple[str, str]]
) -> None:
    store = FolderStore(tmp_path / "quarantine")
    dataset = ingest_folder(build(HERE, name, tmp_path / "set"), store)
    verdict = assess_ingest(dataset, missing_rate=0.05)
    assert verdict.outcome is outcome
    assert GatePolicy().stops(verdict) is (name == "blocks")
    assert {(item.subject, item.code) for item in verdict.findings} == unreadable
