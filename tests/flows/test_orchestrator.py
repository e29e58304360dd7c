"""The embedded orchestrator answers while it is needed, and never outlives its starter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from flows.orchestrator import embedded_orchestrator

_HOLDER = """
import time
from flows.orchestrator import embedded_orchestrator
with embedded_orchestrator() as url:
    print(url, flush=True)
    time.sleep(600)
"""


def _eventually(met: Callable[[], bool], seconds: float = 120) -> bool:
    deadline = time.monotonic() + seconds
    while not met():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=5).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def test_a_configured_server_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    with embedded_orchestrator() as url:
        assert url is None


@pytest.mark.slow
def test_a_server_ends_with_a_starter_that_is_killed(tmp_path: Path) -> None:
    environment = {**os.environ, "PREFECT_HOME": str(tmp_path)}
    environment.pop("PREFECT_API_URL", None)
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    with holder.stdout:
        url = holder.stdout.readline().strip()
        assert _answers(url)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert _eventually(lambda: not _answers(url))
