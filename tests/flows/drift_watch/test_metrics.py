"""What a stock Prometheus gets to see of the watch."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from flows.drift_watch.metrics import DriftCollector, named
from tests.flows.drift_watch.shop import Shop
from tests.services.gateway.toy import SERVICE
from validators.watch.state import FeatureState


def scraped(path: Path) -> dict[tuple[str, ...], float]:
    """Samples by name and the values of their labels other than the service."""
    registry = CollectorRegistry()
    registry.register(DriftCollector(SERVICE, path))
    text = generate_latest(registry).decode()
    return {
        (sample.name, *(value for name, value in sample.labels.items() if name != "service")):
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }  # fmt: skip


def test_before_the_first_look_there_is_nothing(tmp_path: Path) -> None:
    assert scraped(tmp_path / "state.json") == {}


def test_an_alarm_its_features_and_times_are_there(tmp_path: Path) -> None:
    shop = Shop(tmp_path, windows=3, drifted=2)
    for _ in range(2):
        shop.record(shop.draw(60, shift=2))
        shop.look()
    found = scraped(shop.watched().state_file)
    assert found["modalgate_drift_alarm",] == 1
    assert found["modalgate_drift_alarms_total",] == 1
    assert found["modalgate_drift_windows_judged_total",] == 2
    assert found["modalgate_drift_outcome", "FAIL"] == 1
    assert found["modalgate_drift_outcome", "PASS"] == 0
    assert found["modalgate_drift_drifted", "embedding", "image"] == 1
    assert found["modalgate_drift_effect", "brightness", "image"] > 0.15
    assert 0 < found["modalgate_drift_p_value", "brightness", "image"] <= 0.01
    now_s = shop.clock.wall_ns() / 1e9
    assert found["modalgate_drift_last_look_timestamp_seconds",] == pytest.approx(now_s)


def test_a_state_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(b"{")
    assert scraped(path) == {("modalgate_drift_state_readable",): 0}


@pytest.mark.parametrize(("name", "expected"), [
    ("image.brightness", ("image", "brightness")), ("embedding.image", ("image", "embedding")),
    ("tag.sensor", ("tag", "sensor")), ("odd", ("", "odd")),
])  # fmt: skip
def test_a_feature_is_named_by_modality(name: str, expected: tuple[str, str]) -> None:
    assert named(FeatureState(name, 0.1, 0.5, False, 0)) == expected
