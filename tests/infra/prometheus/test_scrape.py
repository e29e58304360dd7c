"""A stock Prometheus scrapes the watch's state and raises the alert of the rules."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import start_http_server

from flows.drift_watch.metrics import DriftCollector
from flows.drift_watch.places import write_state
from services.telemetry.metrics import GatewayMetrics
from tests.infra.prometheus.test_rules import FOLDER
from validators.watch.alarm import AlarmState
from validators.watch.state import STATE_FORMAT, WatchState

BINARY = shutil.which("prometheus")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BINARY is None, reason="no Prometheus here: apt-get install prometheus"),
]

CONFIG = """
global: {{scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: modalgate
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return int(chosen.getsockname()[1])


@pytest.fixture
def state_file(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


@pytest.fixture
def prometheus(tmp_path: Path, state_file: Path) -> Iterator[str]:
    metrics = GatewayMetrics()
    metrics.registry.register(DriftCollector("shop", state_file))
    server, thread = start_http_server(0, "127.0.0.1", registry=metrics.registry)
    rules = FOLDER / "drift.rules.yaml"
    config = tmp_path / "prometheus.yml"
    config.write_text(CONFIG.format(rules=rules, port=server.server_address[1]))
    address = f"127.0.0.1:{free_port()}"
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(BINARY), f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield f"http://{address}/api/v1"
    finally:
        process.terminate()
        process.wait(30)
        server.shutdown()
        server.server_close()
        thread.join()


def asked(url: str, path: str, **parameters: str) -> list[Any]:
    try:
        answer = httpx.get(f"{url}/{path}", params=parameters, timeout=10).json()
    except (httpx.HTTPError, ValueError):
        return []
    data: dict[str, list[Any]] = answer.get("data", {})
    return data.get("alerts", data.get("result", []))


def await_some(url: str, path: str, **parameters: str) -> list[Any]:
    for _ in range(600):
        if found := asked(url, path, **parameters):
            return found
        time.sleep(0.1)
    raise AssertionError(f"{path} stayed empty")


def test_an_alarm_of_the_watch_becomes_an_alert_of_prometheus(
    prometheus: str, state_file: Path
) -> None:
    now_ms = time.time_ns() // 1_000_000
    quiet = WatchState(STATE_FORMAT, "shop", looked_ms=now_ms, judged_ms=now_ms)
    write_state(state_file, quiet)
    (series,) = await_some(prometheus, "query", query="modalgate_drift_alarm")
    assert series["metric"]["service"] == "shop"
    assert asked(prometheus, "alerts") == []
    firing = WatchState(
        STATE_FORMAT, "shop", alarm=AlarmState((), now_ms, now_ms), looked_ms=now_ms,
        judged_ms=now_ms,
    )  # fmt: skip
    write_state(state_file, firing)
    (alert,) = await_some(prometheus, "alerts")
    assert alert["labels"] == {
        "alertname": "ModalgateDriftAlarm", "service": "shop", "severity": "warning",
    }  # fmt: skip
    assert alert["state"] == "firing"
