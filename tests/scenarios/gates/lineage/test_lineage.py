from __future__ import annotations

from pathlib import Path

import pytest

from infra.objects.folder import FolderStore
from services.ingest.folder import ingest_folder
from tests.scenarios.gates.data_sets import build
from validators.contracts.verdict import GatePolicy, Outcome
from validators.lineage.gate import assess_lineage
from validators.lineage.summary import summarise

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("name", "outcome", "codes"),
    [
        ("blocks", Outcome.FAIL, {"missing-tag", "unseen-channels"}),
        ("passes", Outcome.WARN, {"new-lighting", "distribution-shifted", "brightness-shift"}),
    ],
)
def test_infrared_and_a_missing_tag_block_and_dusk_just_passes(
    tmp_path: Path, name: str, outcome: Outcome, codes: set[str]
) -> None:
    store = FolderStore(tmp_path / "quarantine")
    reference = ingest_folder(build(HERE, "reference", tmp_path / "reference"), store)
    current = ingest_folder(build(HERE, name, tmp_path / "current"), store)
    verdict = assess_lineage(current, summarise(reference), champion_exists=True)
    assert verdict.outcome is outcome
    assert GatePolicy().stops(verdict) is (name == "blocks")
    assert {item.code for item in verdict.findings} == codes
