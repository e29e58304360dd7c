"""A released service under traffic: its own data passes, a shift alarms, and the metrics say so."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.gateway.recording import MIN_ROWS
from tests.infra.alerts.receiver import Receiver, receiving
from tests.scenarios.small import SERVICE, Project, picture
from tests.scenarios.stage import Stage
from tests.services.media_files import encode

pytestmark = pytest.mark.slow

SECRET = "s" * 40


def recorded_project(folder: Path) -> Project:
    """The small project, recording all of its requests; one window that drifts alarms."""
    project = Project(folder / "project")
    project.edit(lambda document: document["gates"]["drift"].update(record=1.0))
    project.edit(lambda document: document.update(alerts={"windows": 3, "drifted": 1}))
    return project


@pytest.fixture
def served(fresh: Stage, tmp_path: Path) -> Iterator[tuple[Stage, Project, str]]:
    project = recorded_project(tmp_path)
    ran = fresh.release(project, MODALGATE_GATEWAY_WINDOWS_EVERY_S="0.5")
    assert ran.code == 0, ran.stdout + ran.stderr
    yield fresh, project, ran.document["deployment"]["rest_url"]


def ask(url: str, project: Project, change: Callable[[str, str], bytes] | None = None) -> None:
    """The project's pictures, changed on the way, and captions: a request each, by turns."""
    with httpx.Client(base_url=url, timeout=60) as client:
        for row in project.rows:
            data = (project.folder / "data" / row["image"]).read_bytes()
            if change is not None:
                colour, shape = row["id"].rsplit("-", 1)
                data = change(shape, colour)
            text = row["text"].encode()
            for content, kind in ((data, "image/png"), (text, "text/plain")):
                headers = {"content-type": kind}
                answer = client.post("/v1/answer", content=content, headers=headers)
                assert answer.status_code == 200, answer.text


def await_asked(stage: Stage, project: Project, times: int) -> None:
    """Until all is written that will be: fewer than a window's least number wait for more."""
    asked = 2 * len(project.rows) * times
    for _ in range(120):
        rows = stage.cli("drift", "check", SERVICE, "--json").document.get("rows", 0)
        assert rows <= asked, "the release's own probes are no traffic"
        if rows > asked - MIN_ROWS:
            return
        time.sleep(0.5)
    raise AssertionError("the requests were not written down")


def await_windows(stage: Stage, count: int) -> None:
    await_windows_of(stage, SERVICE, count)


def await_windows_of(stage: Stage, service: str, count: int) -> None:
    for _ in range(600):
        if len(list((stage.home / "windows" / service).rglob("*.window"))) >= count:
            return
        time.sleep(0.1)
    raise AssertionError("no window was written")


def dark(shape: str, colour: str) -> bytes:
    return encode(picture(shape, colour, paper=60))


def metric(url: str, name: str) -> float:
    for line in httpx.get(f"{url}/metrics", timeout=60).text.splitlines():
        if line.startswith(name):
            return float(line.split()[-1])
    raise AssertionError(f"no metric {name}")


def outcomes(document: dict[str, Any]) -> list[str]:
    return [window["outcome"] for window in document["services"][0]["windows"]]


@pytest.mark.heavy
def test_the_release_s_own_data_passes_and_a_shift_is_told_everywhere(
    served: tuple[Stage, Project, str],
) -> None:
    stage, project, url = served
    ask(url, project)
    await_asked(stage, project, 1)
    checked = stage.cli("drift", "check", SERVICE, "--json")
    assert checked.code == 0, checked.stdout + checked.stderr
    assert checked.document["outcome"] in ("PASS", "WARN")
    assert {"embedding.image", "embedding.text", "image.brightness"} <= set(
        checked.document["columns"]
    )
    first = stage.cli("drift", "watch", SERVICE, "--once", "--json")
    assert first.code == 0, first.stdout + first.stderr
    assert outcomes(first.document) == [checked.document["outcome"]]
    assert metric(url, "modalgate_drift_alarm{") == 0

    ask(url, project, dark)
    await_asked(stage, project, 2)
    receiver = Receiver()
    with receiving(receiver):
        settings = {"MODALGATE_ALERT_WEBHOOK": receiver.url, "MODALGATE_ALERT_SECRET": SECRET}
        second = stage.cli("drift", "watch", SERVICE, "--once", "--json", **settings)
        assert second.code == 0, second.stdout + second.stderr
        assert outcomes(second.document) == ["FAIL"]
        (part,) = second.document["services"]
        assert (part["alarm"], part["told"]) == (True, ["began"])
        assert len(receiver.came) == 1
    assert metric(url, "modalgate_drift_alarm{") == 1
    drifted = metric(url, 'modalgate_drift_drifted{feature="brightness",modality="image"')
    assert drifted == 1

    explained = stage.cli("drift", "explain", SERVICE, "--json").document
    assert explained["alarm"] is True
    codes = {f["code"] for v in explained["look"]["verdicts"] for f in v["findings"]}
    assert "drifted" in codes
    assert "image.brightness" in stage.cli("drift", "explain", SERVICE).stdout
    assert stage.cli("drift", "check", SERVICE, "--hours", "0.5", "--json").code == 3
    assert list((stage.home / "workspace").rglob("*.json"))
    forgotten = stage.cli("drift", "forget", SERVICE, "--json")
    assert forgotten.document["windows_removed"] >= 2
    assert stage.cli("drift", "check", SERVICE, "--json").code == 6


def test_a_service_that_is_not_there_is_bad_input(fresh: Stage) -> None:
    for words in (["check", "nothing"], ["watch", "nothing", "--once"], ["explain", "nothing"],
                  ["watch"], ["watch", "--all", "--once"]):  # fmt: skip
        ran = fresh.cli("drift", *words, "--json")
        assert ran.code == 2, (words, ran.stdout, ran.stderr)
