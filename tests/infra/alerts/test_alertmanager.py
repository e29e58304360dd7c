"""Alerts in a real Alertmanager: begun, repeated, ended."""

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

from infra.alerts.alertmanager import AlertmanagerSink
from tests.infra.alerts.receiver import MINUTE_MS, make_alert
from validators.contracts.alerts import AlertState
from validators.contracts.errors import Refused

BINARY = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")

pytestmark = pytest.mark.skipif(
    BINARY is None, reason="no Alertmanager here: apt-get install prometheus-alertmanager"
)

CONFIG = "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"


def free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return int(chosen.getsockname()[1])


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("alertmanager")
    (folder / "config.yml").write_text(CONFIG)
    address = f"127.0.0.1:{free_port()}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(BINARY), f"--config.file={folder / 'config.yml'}",
                f"--storage.path={folder / 'data'}", f"--web.listen-address={address}",
                "--cluster.listen-address=",
            ],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        for _ in range(600):
            try:
                if httpx.get(f"http://{address}/-/ready", timeout=5).status_code == 200:
                    break
            except httpx.HTTPError:
                assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.1)
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(30)


def alerts_of(url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = httpx.get(f"{url}/api/v2/alerts", timeout=30).json()
    return found


def test_an_alarm_is_there_once_until_it_ends(alertmanager: str) -> None:
    now_ms, sink = time.time_ns() // 1_000_000, AlertmanagerSink(alertmanager)
    sink.deliver(make_alert(now_ms))
    sink.deliver(make_alert(now_ms + 1000, started_ms=now_ms))
    (found,) = alerts_of(alertmanager)
    assert found["labels"] == {
        "alertname": "ModalgateDrift", "severity": "warning", "service": "shop",
    }  # fmt: skip
    assert found["annotations"]["summary"].startswith("2 of the last 3 windows drifted")
    assert found["status"]["state"] in ("active", "unprocessed")
    ended = make_alert(now_ms, AlertState.RESOLVED, started_ms=now_ms - MINUTE_MS)
    sink.deliver(ended)
    assert alerts_of(alertmanager) == []


def test_a_wrong_address_is_refused(alertmanager: str) -> None:
    with pytest.raises(Refused):
        AlertmanagerSink(f"{alertmanager}/elsewhere").deliver(make_alert())
