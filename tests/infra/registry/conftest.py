from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from infra.registry.ledger import FileLedger
from infra.registry.mlflow import MlflowRegistry
from tests.infra.manual_clock import ManualClock


@dataclass(frozen=True)
class Setting:
    """A registry under test, and how to open it again."""

    tracking_uri: str
    folder: Path
    artifact_root: Path | None
    model: str

    @property
    def ledger(self) -> FileLedger:
        return FileLedger(self.folder / "ledger.jsonl", ManualClock())

    def open(self, on_step: Callable[[str], None] = lambda step: None) -> MlflowRegistry:
        return MlflowRegistry(
            self.tracking_uri,
            self.ledger,
            lock_folder=self.folder / "locks",
            artifact_root=self.artifact_root,
            clock=ManualClock(),
            on_step=on_step,
        )


class Server:
    """A real MLflow server as a child process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [
            sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1",
            "--port", str(self._port), "--workers", "1",
            "--backend-store-uri", f"sqlite:///{self._folder / 'server.db'}",
            "--artifacts-destination", str(self._folder / "artifacts"),
        ]  # fmt: skip
        quiet = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "PYTHONWARNINGS": "ignore"}
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, **quiet},
                start_new_session=True,
            )  # fmt: skip
        for _ in range(1200):
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.uri}/health", timeout=5).status_code == 200:
                    return
            assert self._process.poll() is None, (self._folder / "log").read_text()[-3000:]
            time.sleep(0.2)
        raise RuntimeError((self._folder / "log").read_text()[-3000:])

    def stop(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, 9)  # the group that was started with it
            self._process.wait()
            self._process = None


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("mlflow"))
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("embedded")


@pytest.fixture(params=["sqlite", pytest.param("server", marks=pytest.mark.slow)])
def setting(request: pytest.FixtureRequest, tmp_path: Path) -> Setting:
    model = f"shop-{secrets.token_hex(4)}"
    if request.param == "server":
        return Setting(request.getfixturevalue("server").uri, tmp_path, None, model)
    folder = request.getfixturevalue("database")
    return Setting(f"sqlite:///{folder / 'mlflow.db'}", tmp_path, folder / "artifacts", model)


@pytest.fixture
def registry(setting: Setting) -> MlflowRegistry:
    return setting.open()
