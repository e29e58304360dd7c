from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from validators.contracts.verdict import GatePolicy, Outcome
from validators.drift.gate import assess_drift
from validators.drift.window import DriftWindow, read_window, write_window

HERE = Path(__file__).parent


def window(name: str) -> DriftWindow:
    written = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    made = DriftWindow(
        {name: np.asarray(values, np.float64) for name, values in written["descriptors"].items()},
        {name: np.asarray(rows, np.float32) for name, rows in written["embeddings"].items()},
    )
    return read_window(write_window(made))


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
