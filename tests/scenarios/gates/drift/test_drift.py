from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.validators.drift.windows import make_window
from validators.contracts.verdict import GatePolicy, Outcome
from validators.drift.gate import assess_drift
from validators.drift.window import DriftWindow
from validators.drift.window_file import read_window, write_window

HERE = Path(__file__).parent


def window(name: str) -> DriftWindow:
    written = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    return read_window(write_window(make_window(written["descriptors"], written["embeddings"])))


@pytest.mark.parametrize(
    ("name", "outcome", "drifted"),
    [("blocks", Outcome.FAIL, {"image.brightness"}), ("passes", Outcome.PASS, set())],
)
def test_darkened_pictures_block_and_slightly_darker_ones_just_pass(
    name: str, outcome: Outcome, drifted: set[str]
) -> None:
    verdict = assess_drift(window("reference"), window(name), champion_exists=True)
    assert verdict.outcome is outcome
    assert GatePolicy().stops(verdict) is (name == "blocks")
    assert {item.subject for item in verdict.findings} == drifted
