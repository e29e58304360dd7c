"""Disk full, store gone, registry down, port taken: each said plainly, and the next run goes on."""

from __future__ import annotations

import ctypes
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from infra.objects.open import open_store
from tests.infra.seaweed import Seaweed
from tests.scenarios.small import SERVICE, Project
from tests.scenarios.stage import Stage, release_arguments

pytestmark = pytest.mark.slow

MS_REMOUNT = 32


class TinyDisk:
    """A file system of its own below the state folder, as small as it is told to be."""

    def __init__(self, point: Path, kib: int) -> None:
        self._point, self._libc = point, ctypes.CDLL(None, use_errno=True)
        point.mkdir(parents=True)
        if self._mount(0, kib) != 0:
            pytest.skip("only root may mount")

    def grow(self, kib: int) -> None:
        assert self._mount(MS_REMOUNT, kib) == 0

    def close(self) -> None:
        self._libc.umount2(str(self._point).encode(), 2)

    def _mount(self, flags: int, kib: int) -> int:
        place, options = str(self._point).encode(), f"size={kib}k".encode()
        return int(self._libc.mount(b"tmpfs", place, b"tmpfs", flags, options))


def test_a_disk_that_fills_up_ends_the_release_and_room_lets_it_go_on(
    fresh: Stage, project: Project
) -> None:
    disk = TinyDisk(fresh.home / "objects", kib=500)
    try:
        ran = fresh.release(project)
        document = ran.document
        assert (ran.code, document["status"]) == (1, "failed")
        assert "disk of the object store is full" in document["error"]["what"], document["error"]
        assert document["error"]["remedy"]
        assert "Traceback" not in ran.stderr
        done = {step["name"] for step in document["steps"]}
        assert done
        disk.grow(kib=50_000)
        again = fresh.release(project).document
        assert again["status"] == "done", again.get("error")
        assert {step["name"] for step in again["steps"] if step["cached"]} >= done
        assert fresh.orphans() == []
        assert fresh.cli("stop", SERVICE, "--json").code == 0
    finally:
        disk.close()


@pytest.fixture
def seaweed(tmp_path: Path) -> Iterator[Seaweed]:
    server = Seaweed(tmp_path / "seaweed")
    server.start()
    try:
        server.make_bucket("releases")
        yield server
    finally:
        server.stop()


def test_an_object_store_that_goes_away_is_named_and_the_release_goes_on_when_it_is_back(
    fresh: Stage, project: Project, seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**seaweed.environment, "MODALGATE_STORE": "s3://releases/shapes"}
    run = fresh.start(*release_arguments(project), "--json", **environment)
    while not (fresh.home / "evidence" / SERVICE / "quality.json").exists():
        assert run.running(), run.wait()
        time.sleep(0.01)
    seaweed.stop()
    ran = run.wait()
    assert (ran.code, ran.document["status"]) == (1, "failed")
    assert ran.document["error"]["remedy"]
    assert "Traceback" not in ran.stderr
    assert fresh.processes() == []

    seaweed.start()
    seaweed.make_bucket("releases")
    again = fresh.release(project, "--no-deploy", **environment)
    assert again.code == 0, again.document.get("error")
    cached = {step["name"] for step in again.document["steps"] if step["cached"]}
    assert cached >= {"ingest", "deidentify", "privacy", "quality"}
    for name, value in seaweed.environment.items():
        monkeypatch.setenv(name, value)
    store = open_store(environment["MODALGATE_STORE"])
    assert store.contains(again.document["bundle"])
    assert not list((fresh.home / "objects").glob("objects/*/*"))


def test_a_registry_that_is_down_is_named_within_seconds(released: Stage, project: Project) -> None:
    with closing(socket.socket()) as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        started = time.monotonic()
        ran = released.release(project, MODALGATE_REGISTRY=url)
        assert (ran.code, ran.document["status"]) == (1, "failed")
        assert url in ran.document["error"]["where"] + ran.document["error"]["what"]
        assert ran.document["error"]["remedy"]
        assert "Traceback" not in ran.stderr
        listed = released.cli("review", "list", SERVICE, "--json", MODALGATE_REGISTRY=url)
        assert listed.code == 1
        assert time.monotonic() - started < 120
    assert released.release(project).document["unchanged"] is True


def test_a_port_that_is_taken_is_named_by_serve(released: Stage) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        ran = released.cli("serve", SERVICE, "--rest-port", port)
    assert ran.code == 1
    assert port in ran.stderr
    assert "choose another port" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert released.processes() == []


def test_a_service_whose_port_was_taken_meanwhile_comes_up_on_another(
    released: Stage, project: Project
) -> None:
    first = released.release(project).document["deployment"]
    assert released.cli("stop", SERVICE, "--json").code == 0
    port = int(first["rest_url"].rpartition(":")[2])
    with closing(socket.socket()) as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        back = released.cli("deploy", SERVICE, "--json")
    assert back.code == 0, back.document
    assert back.document["deployment"]["phase"] == "serving"
    assert back.document["deployment"]["rest_url"] != first["rest_url"]


def test_another_orchestrator_that_is_down_is_named(released: Stage, project: Project) -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/api"
        ran = released.command("release", str(project.pipeline), "--json", PREFECT_API_URL=url)
    assert (ran.code, ran.document["status"]) == (1, "failed")
    assert ran.document["error"]["remedy"]
    assert "Traceback" not in ran.stderr
