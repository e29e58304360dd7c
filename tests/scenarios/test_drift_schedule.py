"""Schedules and automations at a real orchestrator: a run comes, and an alarm starts one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from flows.orchestrator import embedded_orchestrator
from tests.scenarios.small import SERVICE
from tests.scenarios.stage import Stage, without_settings
from tests.scenarios.test_drift_watch import ask, await_windows, dark, recorded_project

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[2]
WAIT_S = 400


@pytest.fixture(scope="module")
def orchestrator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of its own, with its schedulers and triggers."""
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("PREFECT_API_URL", raising=False)
        environment.setenv("PREFECT_HOME", str(tmp_path_factory.mktemp("orchestrator")))
        environment.setenv("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
        with embedded_orchestrator() as url:
            assert url is not None
            yield url


@pytest.fixture
def alarming(fresh: Stage, tmp_path: Path) -> Stage:
    """A released service whose recorded traffic drifts; what an alarm starts is a review."""
    project = recorded_project(tmp_path)
    project.edit(lambda document: document["alerts"].update(on_alarm="review"))
    ran = fresh.release(project, MODALGATE_GATEWAY_WINDOWS_EVERY_S="0.5")
    assert ran.code == 0, ran.stdout + ran.stderr
    ask(ran.document["deployment"]["rest_url"], project, dark)
    await_windows(fresh, 1)
    assert fresh.cli("stop", SERVICE, "--json").code == 0
    return fresh


def environment_of(stage: Stage, url: str) -> dict[str, str]:
    given = {name: value for name, value in stage.environment.items() if value is not None}
    return {**without_settings(), **given, "PREFECT_API_URL": url, "OMP_NUM_THREADS": "1"}


@contextlib.contextmanager
def running(stage: Stage, url: str, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    log = stage.folder / "process.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment_of(stage, url), cwd=ROOT, stdout=output, stderr=output
        )
        try:
            yield process
        except BaseException:
            sys.stderr.write(log.read_text()[-5000:])
            raise
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def runs_of(url: str, flow: str) -> list[dict[str, Any]]:
    body = {"flows": {"name": {"any_": [flow]}}}
    found: list[dict[str, Any]] = httpx.post(
        f"{url}/flow_runs/filter", json=body, timeout=60
    ).json()
    return found


def completed(url: str, flow: str) -> list[dict[str, Any]]:
    return [run for run in runs_of(url, flow) if run["state_type"] == "COMPLETED"]


def await_that(condition: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert process.poll() is None, "it ended by itself"
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(1)


def automations(url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = httpx.post(
        f"{url}/automations/filter", json={}, timeout=60
    ).json()
    return found


def asked(stage: Stage) -> list[str]:
    return [entry.action for entry in stage.ledger.entries(SERVICE) if entry.actor == "drift-watch"]


def test_a_scheduled_look_comes_alarms_and_its_automation_asks_for_a_review(
    alarming: Stage, orchestrator: str
) -> None:
    words = (sys.executable, "-m", "flows.cli", "drift", "watch", SERVICE, "--cron", "* * * * *")
    with running(alarming, orchestrator, *words) as process:
        await_that(lambda: completed(orchestrator, "drift_watch"), process)
        (run, *_) = completed(orchestrator, "drift_watch")
        assert run["auto_scheduled"] is True
        await_that(lambda: completed(orchestrator, "drift_review"), process)
        await_that(lambda: len(completed(orchestrator, "drift_watch")) >= 2, process)
    assert len(runs_of(orchestrator, "drift_review")) == 1, "a second look is no second alarm"
    assert asked(alarming) == ["request-review"]
    explained = alarming.cli("drift", "explain", SERVICE, "--json").document
    assert explained["alarm"] is True


def test_schedules_are_set_up_twice_as_once_run_by_a_worker_and_taken_away(
    alarming: Stage, orchestrator: str
) -> None:
    before = len(completed(orchestrator, "drift_watch"))
    schedule = ("drift", "schedule", SERVICE, "--json")
    for _ in range(2):
        made = alarming.command(*schedule, PREFECT_API_URL=orchestrator)
        assert made.code == 0, made.stdout + made.stderr
    name = f"modalgate-drift-{SERVICE}"
    assert [item["name"] for item in automations(orchestrator)].count(name) == 1
    deployed = subprocess.run(
        [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all"],
        cwd=ROOT, env=environment_of(alarming, orchestrator) | {"PREFECT_CLI_PROMPT": "false"},
        capture_output=True, text=True, check=False, timeout=400,
    )  # fmt: skip
    assert deployed.returncode == 0, deployed.stdout + deployed.stderr
    found = httpx.post(f"{orchestrator}/deployments/filter", json={}, timeout=60).json()
    names = {item["name"] for item in found}
    assert {"every-service", "by-file", "daily", f"drift-{SERVICE}"} <= names
    worker = (sys.executable, "-m", "prefect", "worker", "start", "--pool", "modalgate")
    with running(alarming, orchestrator, *worker) as process:
        (watch,) = [
            item for item in found
            if item["name"] == f"drift-{SERVICE}" and item["entrypoint"].endswith(":drift_watch")
        ]  # fmt: skip
        started = httpx.post(
            f"{orchestrator}/deployments/{watch['id']}/create_flow_run",
            json={"state": {"type": "SCHEDULED"}}, timeout=60,
        )  # fmt: skip
        assert started.status_code == 201, started.text
        await_that(lambda: len(completed(orchestrator, "drift_watch")) > before, process)
        await_that(lambda: asked(alarming) == ["request-review"], process)
    gone = alarming.command(*schedule, "--remove", PREFECT_API_URL=orchestrator)
    assert gone.code == 0, gone.stdout + gone.stderr
    assert name not in [item["name"] for item in automations(orchestrator)]


def test_without_an_orchestrator_nothing_can_be_set_up(alarming: Stage) -> None:
    ran = alarming.cli("drift", "schedule", SERVICE, "--json", PREFECT_API_URL=None)
    assert ran.code == 2, ran.stdout
    assert os.environ.get("PREFECT_API_URL") != ""
