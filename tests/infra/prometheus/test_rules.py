"""The alert rules say what they should, by Prometheus' own checker, and name metrics that exist."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from flows.drift_watch.metrics import DriftCollector
from flows.drift_watch.places import write_state
from services.telemetry.metrics import GatewayMetrics
from validators.watch.state import STATE_FORMAT, WatchState

FOLDER = Path(__file__).parents[3] / "infra" / "prometheus"
PROMTOOL = shutil.which("promtool")


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool here: apt-get install prometheus")
@pytest.mark.parametrize("words", [
    ("check", "rules", "drift.rules.yaml"), ("test", "rules", "drift.rules.test.yaml"),
])  # fmt: skip
def test_promtool_passes(words: tuple[str, ...]) -> None:
    ran = subprocess.run(
        [str(PROMTOOL), *words], cwd=FOLDER, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_metric_of_the_rules_is_one_that_a_gateway_has(tmp_path: Path) -> None:
    metrics = GatewayMetrics()
    write_state(tmp_path / "state.json", WatchState(STATE_FORMAT, "shop"))
    metrics.registry.register(DriftCollector("shop", tmp_path / "state.json"))
    metrics.count_recorded("unwritten")
    served = metrics.render().decode()
    named = set(re.findall(r"modalgate_\w+", (FOLDER / "drift.rules.yaml").read_text()))
    assert named
    assert {name for name in named if f"\n{name}" not in served} == set()
