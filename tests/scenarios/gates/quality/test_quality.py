from __future__ import annotations

from pathlib import Path

import pytest

from infra.objects.folder import FolderStore
from services.ingest.folder import ingest_folder
from tests.scenarios.gates.data_sets import build
from validators.contracts.verdict import GatePolicy, Outcome
from validators.quality.gate import Surroundings, assess_quality, examine
from validators.quality.settings import QualitySettings

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "outcome", "bad"),
    [("blocks", Outcome.FAIL, {"capped"}), ("passes", Outcome.PASS, set())],
)
def test_a_capped_lens_blocks_and_a_dark_picture_just_passes(
    tmp_path: Path, name: str, outcome: Outcome, bad: set[str]
) -> None:
    store = FolderStore(tmp_path / "quarantine")
    dataset = ingest_folder(build(HERE, name, tmp_path / "set"), store)
    verdict = assess_quality(dataset)
    assert verdict.outcome is outcome
    assert GatePolicy().stops(verdict) is (name == "blocks")
    assert {item.subject for item in verdict.findings} == bad


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "outcome", "code"),
    [
        ("copies-blocks", Outcome.FAIL, "duplicate-across-splits-image"),
        ("copies-passes", Outcome.WARN, "duplicate-content-image"),
    ],
)
def test_a_picture_on_both_sides_of_the_split_blocks_and_on_one_side_warns(
    tmp_path: Path, name: str, outcome: Outcome, code: str
) -> None:
    dataset = ingest_folder(build(HERE, name, tmp_path / "set"), FolderStore(tmp_path / "store"))
    held_out = [item.id for item in dataset.samples if item.tag_map()["split"] == "held-out"]
    verdict = examine(dataset, QualitySettings(), Surroundings(held_out=held_out)).verdict
    assert verdict.outcome is outcome
    assert [item.code for item in verdict.findings] == [code]
    assert {"coffee", "coffee-again"} == set(verdict.findings[0].subject.split("="))
