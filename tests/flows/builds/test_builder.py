"""The embedded builder as a process: it fulfils, it survives kills of its work, it ends in time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from flows.builder import SETTING, builder_state, ensure_builder, stop_builder
from flows.inventory import stored_engines
from tests.flows.builds.shop import SERVICE, Shop
from validators.contracts.builds import BuildState
from validators.contracts.digest import short

TIMEOUT_S = 400


def until(true: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def builders(shop: Shop) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if str(shop.workspace.home.root / "locks" / f"builder-{SERVICE}.lock")
        in (process.info["cmdline"] or [])
    ]


@pytest.fixture
def serving(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A deployed service."""
    monkeypatch.delenv(SETTING, raising=False)
    shop.workspace.deployments.apply(shop.revision)
    yield shop
    stop_builder(shop.workspace.home, SERVICE)


def states(shop: Shop) -> list[BuildState]:
    return [build.state for build in shop.workspace.builds.builds()]


@pytest.mark.heavy
def test_a_request_is_fulfilled_out_of_the_box_and_the_builder_ends_with_its_gateway(
    serving: Shop,
) -> None:
    home = serving.workspace.home
    ensure_builder(home, SERVICE)
    ensure_builder(home, SERVICE)
    until(lambda: builders(serving), "the builder starts")
    serving.workspace.builds.file(serving.request())
    until(lambda: states(serving) == [BuildState.DONE], "the request is fulfilled")
    (builder,) = builders(serving)
    assert builder.nice() == 15
    name = short(serving.bundle.digest)
    assert serving.workspace.deployments.replaced_engine(SERVICE, name, "image") is not None
    serving.workspace.deployments.stop(SERVICE)
    until(lambda: not builders(serving), "the builder ends")


@pytest.mark.heavy
def test_an_engine_that_a_restarted_gateway_passes_over_is_placed_again(serving: Shop) -> None:
    workspace, name = serving.workspace, short(serving.bundle.digest)
    ensure_builder(workspace.home, SERVICE)
    workspace.builds.file(serving.request())
    until(lambda: states(serving) == [BuildState.DONE], "the request is fulfilled")
    placed = workspace.deployments.replaced_engine(SERVICE, name, "image")
    assert placed is not None
    intact = placed.engine.read_bytes()
    placed.engine.write_bytes(intact[:-1] + bytes([intact[-1] ^ 1]))
    workspace.deployments.stop(SERVICE)
    workspace.deployments.apply(serving.revision)
    ensure_builder(workspace.home, SERVICE)
    until(lambda: placed.engine.read_bytes() == intact, "the engine is placed again")
    until(lambda: states(serving) == [BuildState.DONE], "the request is fulfilled again")


@pytest.mark.heavy
def test_what_a_build_cannot_do_is_found_in_the_builders_log(serving: Shop) -> None:
    home = serving.workspace.home
    assert builder_state(home, SERVICE) == {"running": False, "last_said": ""}
    serving.workspace.builds.file(serving.request(encoder="sound"))
    ensure_builder(home, SERVICE)
    until(lambda: builder_state(home, SERVICE)["last_said"], "the fault is written down")
    state = builder_state(home, SERVICE)
    assert state["running"]
    assert f"{SERVICE} sound is failed: the bundle has no encoder 'sound'" in state["last_said"]


@pytest.mark.heavy
def test_a_builder_that_is_told_to_end_leaves_its_request_waiting(serving: Shop) -> None:
    serving.workspace.builds.file(serving.request())
    ensure_builder(serving.workspace.home, SERVICE)
    until(lambda: states(serving) == [BuildState.BUILDING], "a build starts")
    stop_builder(serving.workspace.home, SERVICE)
    until(lambda: not builders(serving), "the builder ends")
    until(lambda: states(serving) == [BuildState.WAITING], "it waits again")


def test_no_builder_starts_where_it_is_switched_off(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, "off")
    ensure_builder(shop.workspace.home, SERVICE)
    assert builders(shop) == []


def _start_build() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "flows.cli", "engines", "build", "--json"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ,
    )  # fmt: skip


@pytest.mark.heavy
@pytest.mark.parametrize("task", ["build", "reference_onnx", "run_engine"])
def test_a_builder_killed_in_the_middle_leaves_a_request_that_the_next_one_fulfils(
    serving: Shop, task: str
) -> None:
    serving.workspace.builds.file(serving.request())
    builder = _start_build()
    process = psutil.Process(builder.pid)
    module = f"services.engines.tasks.{task}"

    def at_work() -> list[psutil.Process]:
        try:
            children = process.children()
        except psutil.NoSuchProcess:
            return []
        return [child for child in children if module in _words(child)]

    until(at_work, f"the child for {task} starts")
    children = at_work()
    builder.kill()
    builder.wait()
    psutil.wait_procs(children, timeout=TIMEOUT_S)
    assert not any(child.is_running() for child in children)
    (build,) = serving.workspace.builds.builds()
    assert (build.state, build.tries) == (BuildState.WAITING, 1)
    assert _start_build().wait(TIMEOUT_S) == 0
    assert states(serving) == [BuildState.DONE]
    assert {engine.use.value for engine in stored_engines(serving.workspace)} == {"live"}


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
