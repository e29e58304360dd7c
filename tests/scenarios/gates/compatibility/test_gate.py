from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from validators.compatibility.measured import CompatibilityMeasurement
from validators.compatibility.verdict import assess_compatibility
from validators.compatibility.words import CompatibilitySettings
from validators.contracts.verdict import GatePolicy, Outcome

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Scenario:
    measured: CompatibilityMeasurement
    settings: CompatibilitySettings


@pytest.mark.parametrize(
    ("name", "outcome", "code"), [("blocks", Outcome.FAIL, "reindex"), ("passes", Outcome.PASS, "")]
)
def test_a_foreign_space_blocks_and_the_same_one_just_passes(
    name: str, outcome: Outcome, code: str
) -> None:
    given = msgspec.json.decode((HERE / f"{name}.json").read_bytes(), type=Scenario)
    verdict = assess_compatibility(given.measured, given.settings)
    assert verdict.outcome is outcome
    assert GatePolicy().stops(verdict) is (name == "blocks")
    assert not code or code in [finding.code for finding in verdict.findings]
