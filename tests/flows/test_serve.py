"""The gateway as a process of its own, with real engines."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from flows.serve import EXIT_CANNOT_START, parse_options, read_token, write_state
from infra.builds.folder import FolderQueue
from infra.clocks import SystemClock
from infra.keys.secret import open_secret
from infra.local_target.overlay import placing
from infra.windows import WindowFolder
from services.engines.profiles.records import read_windows
from tests.services.gateway.conftest import until
from tests.services.gateway.real import Real, make_real
from tests.services.gateway.toy import COLOURS, SERVICE, picture
from validators.contracts.errors import BadInput, Refused
from validators.drift.window_file import read_window

TOKEN = "a-token-for-this-test-only"


@pytest.fixture(scope="module", params=["openvino", "onnxruntime"])
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Real:
    return make_real(tmp_path_factory.mktemp(request.param), request.param)


def command(folder: Path, trusted: Path, *more: str) -> list[str]:
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(TOKEN)
    return [
        sys.executable, "-m", "flows.serve",
        "--service", SERVICE,
        "--state-file", str(folder / "state.json"),
        "--token-file", str(token),
        "--trusted-keys", str(trusted),
        *more,
    ]  # fmt: skip


@contextlib.asynccontextmanager
async def running(folder: Path, trusted: Path, *more: str) -> AsyncIterator[dict[str, Any]]:
    state_file, log = folder / "state.json", folder / "log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command(folder, trusted, *more), stderr=output
        )
    try:
        await until(lambda: state_file.exists() or process.returncode is not None)
        assert process.returncode is None, log.read_text()[-3000:]
        state: dict[str, Any] = json.loads(state_file.read_text())
        assert state["pid"] == process.pid
        yield {**state, "process": process}
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), 90)
            except TimeoutError:
                process.kill()
                await process.wait()
    assert process.returncode == 0, log.read_text()[-3000:]


async def send(client: httpx.AsyncClient, colour: str) -> httpx.Response:
    return await client.post(
        "/v1/answer", content=picture(colour), headers={"content-type": "image/png"}
    )


@pytest.mark.slow
async def test_a_process_serves_a_real_engine_and_ends_cleanly(real: Real, tmp_path: Path) -> None:
    bundle = ("--bundle", str(real.path), "--name", "r1")
    async with (
        running(tmp_path, real.trusted, *bundle) as state,
        httpx.AsyncClient(base_url=state["rest_url"], timeout=60) as client,
    ):
        for colour in COLOURS:
            answer = (await send(client, colour)).json()
            assert [item["id"] for item in answer["items"]] == [colour]
        pixels = np.zeros((4, 3, 16, 16), np.float32)
        tensor = {
            "name": "pixels",
            "shape": list(pixels.shape),
            "datatype": "FP32",
            "data": pixels.reshape(-1).tolist(),
        }
        response = await client.post("/v2/models/image/infer", json={"inputs": [tensor]})
        assert [o["shape"] for o in response.json()["outputs"]] == [[4, 8], [4, 4]]
        over = {**tensor, "shape": [5, 3, 16, 16], "data": [0.0] * 5 * 768}
        split = await client.post("/v2/models/image/infer", json={"inputs": [over]})
        assert [o["shape"] for o in split.json()["outputs"]] == [[5, 8], [5, 4]], split.text
        many = {**tensor, "shape": [33, 3, 16, 16], "data": [0.0] * 33 * 768}
        outside = await client.post("/v2/models/image/infer", json={"inputs": [many]})
        assert outside.status_code == 400, outside.text  # more parts than a batch is split into
        assert "batch 32" in outside.json()["error"]
        assert state["admin_url"].startswith("http://127.0.0.1:")


@pytest.mark.slow
async def test_no_accepted_request_is_lost_when_it_is_told_to_end(
    real: Real, tmp_path: Path
) -> None:
    bundle = ("--bundle", str(real.path), "--name", "r1")
    answered: list[int] = []
    turned_away: list[Exception] = []
    lost: list[Exception] = []
    stop = asyncio.Event()

    async def load(url: str) -> None:
        """One request after the other, until the port is closed."""
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:
            while not stop.is_set():
                try:
                    answered.append((await send(client, "red")).status_code)
                except httpx.ConnectError as error:  # never accepted
                    turned_away.append(error)
                    return
                except httpx.HTTPError as error:
                    lost.append(error)
                    return

    async with running(tmp_path, real.trusted, *bundle, "--queue-rows", "500") as state:
        clients = [asyncio.create_task(load(state["rest_url"])) for _ in range(8)]
        await until(lambda: len(answered) > 50)
        state["process"].send_signal(signal.SIGTERM)
        await asyncio.wait_for(asyncio.gather(*clients), 90)
        stop.set()
    assert lost == []
    assert len(turned_away) == 8
    assert set(answered) == {200}


@pytest.mark.slow
async def test_revisions_come_and_go_in_the_running_process(real: Real, tmp_path: Path) -> None:
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with (
        running(tmp_path, real.trusted) as state,
        httpx.AsyncClient(base_url=state["admin_url"], headers=headers, timeout=60) as admin,
        httpx.AsyncClient(base_url=state["rest_url"], timeout=60) as client,
    ):
        assert (await client.get("/v2/health/ready")).status_code == 503
        body = {"name": "r1", "bundle": real.digest, "path": str(real.path)}
        loaded = await admin.post("/admin/revisions", json=body)
        assert loaded.status_code == 200, loaded.text
        await admin.put("/admin/traffic", json={"stable": "r1", "canary": None, "percent": 0})
        assert (await send(client, "blue")).json()["revision"] == "r1"


def pixels_of(batch: int) -> dict[str, Any]:
    shape = [batch, 3, 16, 16]
    data = [0.5] * batch * 768
    return {"inputs": [{"name": "pixels", "shape": shape, "datatype": "FP32", "data": data}]}


@pytest.mark.slow
async def test_an_engine_changes_under_traffic_and_stays_changed_after_a_start(
    real: Real, tmp_path: Path
) -> None:
    """A shape outside is asked for; the engine built for it takes over, and no request fails."""
    builds, shapes, engines = tmp_path / "builds", tmp_path / "shapes", tmp_path / "engines"
    options = (
        "--bundle", str(real.path), "--name", "r1", "--queue-rows", "500",
        "--build-queue", str(builds), "--shapes", str(shapes), "--engines", str(engines),
    )  # fmt: skip
    headers = {"authorization": f"Bearer {TOKEN}"}
    queue, (manifest, engine) = FolderQueue(builds, SystemClock()), real.enlarged(12)
    outcomes: list[tuple[int, str]] = []
    stop = asyncio.Event()

    async def load(client: httpx.AsyncClient, batch: int) -> None:
        while not stop.is_set():
            answer = await client.post("/v2/models/image/infer", json=pixels_of(batch))
            used = answer.json().get("parameters", {}).get("modalgate.engine", answer.text)
            outcomes.append((answer.status_code, used))

    async with (
        running(tmp_path, real.trusted, *options) as state,
        httpx.AsyncClient(base_url=state["rest_url"], timeout=60) as client,
        httpx.AsyncClient(base_url=state["admin_url"], headers=headers, timeout=60) as admin,
    ):
        users = [asyncio.create_task(load(client, batch)) for batch in (1, 3, 4, 11)]
        await until(lambda: len(outcomes) > 20 and bool(queue.builds()))
        body = {"manifest": str(manifest), "engine": str(engine)}
        swapped = await admin.put("/admin/revisions/r1/engines/image", json=body)
        assert swapped.status_code == 200, swapped.text
        seen = len(outcomes)
        await until(lambda: len(outcomes) > seen + 20)
        stop.set()
        await asyncio.gather(*users)
    assert {status for status, _ in outcomes} == {200}
    # ONNX Runtime's optimised graph is the same for all profiles, byte by byte.
    assert len({used for _, used in outcomes}) == (2 if real.spec.backend == "openvino" else 1)
    assert [dict(item.request.sizes) for item in queue.builds()] == [{"batch": 12}]
    (window,) = read_windows((shapes / SERVICE / "image.json").read_bytes())
    assert window.total == len(outcomes)
    assert {item.sizes for item in window.counts} == {(1,), (3,), (4,), (11,)}

    (tmp_path / "state.json").unlink()
    with placing(engines, "r1", "image", manifest.read_bytes(), engine):
        pass
    async with (
        running(tmp_path, real.trusted, *options) as state,
        httpx.AsyncClient(base_url=state["rest_url"], timeout=60) as client,
    ):
        answer = await client.post("/v2/models/image/infer", json=pixels_of(12))
        assert answer.json()["parameters"]["modalgate.engine"] == swapped.json()["engine"]


@pytest.mark.slow
async def test_a_port_that_is_taken_is_exit_code_2(real: Real, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        arguments = command(tmp_path, real.trusted, "--rest-port", port)
        done = await asyncio.to_thread(
            subprocess.run, arguments, capture_output=True, timeout=120, check=False
        )
    assert done.returncode == EXIT_CANNOT_START
    error = json.loads(done.stderr.splitlines()[-1])["error"]
    assert port in error["what"]
    assert error["remedy"]
    assert not (tmp_path / "state.json").exists()


@pytest.mark.slow
async def test_a_bundle_signed_by_a_stranger_is_exit_code_2(real: Real, tmp_path: Path) -> None:
    from infra.keys.file import FileSigner

    strangers = tmp_path / "strangers"
    strangers.mkdir()
    FileSigner.create_or_open(tmp_path / "stranger.pem").publish(strangers)
    arguments = command(tmp_path, strangers, "--bundle", str(real.path), "--name", "r1")
    done = await asyncio.to_thread(
        subprocess.run, arguments, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == EXIT_CANNOT_START
    assert json.loads(done.stderr.splitlines()[-1])["error"]["remedy"]


_STARTER = """
import subprocess, sys, time, os
subprocess.Popen([*sys.argv[1:], "--parent", str(os.getpid())])
time.sleep(600)
"""


@pytest.mark.slow
async def test_a_gateway_drains_when_the_process_that_started_it_is_killed(
    real: Real, tmp_path: Path
) -> None:
    starter = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _STARTER, *command(tmp_path, real.trusted)
    )
    state_file = tmp_path / "state.json"
    await until(state_file.exists)
    pid = json.loads(state_file.read_text())["pid"]
    starter.kill()
    await starter.wait()
    await until(lambda: not Path(f"/proc/{pid}").exists())


def _missing(folder: Path) -> Path:
    return folder / "nothing"


def _written(text: str, mode: int) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / "token"
        path.touch(mode=0o600)
        path.write_text(text)
        path.chmod(mode)
        return path

    return write


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (_missing, BadInput),
        (_written("", 0o600), BadInput),
        (_written("short", 0o600), BadInput),
        (_written(TOKEN, 0o644), Refused),
    ],
)
def test_a_token_file_that_protects_nothing_is_refused(
    tmp_path: Path, make: Callable[[Path], Path], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        read_token(make(tmp_path))


def test_a_private_token_is_read(tmp_path: Path) -> None:
    assert read_token(_written(f"{TOKEN}\n", 0o600)(tmp_path)) == TOKEN


def test_the_state_file_is_whole_and_private(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    for number in (1, 2):
        write_state(path, {"pid": number})
        assert json.loads(path.read_text()) == {"pid": number}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["state.json"]  # noqa: PTH208


REQUIRED = [
    "--service", "s", "--state-file", "f", "--token-file", "t", "--trusted-keys", "k",
]  # fmt: skip


def test_knobs_come_from_the_environment_and_the_command_line_wins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MODALGATE_GATEWAY_WORKERS", "3")
    monkeypatch.setenv("MODALGATE_GATEWAY_QUEUE_ROWS", "7")
    options = parse_options([*REQUIRED, "--queue-rows", "9"])
    assert (options.workers, options.queue_rows, options.default_timeout_ms) == (3, 9, None)


@pytest.mark.parametrize(
    "more", [["--rest-port", "70000"], ["--workers", "0"], ["--bundle", "b"], ["--name", "n"]]
)
def test_options_that_mean_nothing_are_exit_code_2(more: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_options([*REQUIRED, *more])
    assert caught.value.code == EXIT_CANNOT_START


@pytest.mark.slow
async def test_two_processes_record_and_a_kill_leaves_whole_windows(
    real: Real, tmp_path: Path
) -> None:
    windows, key = tmp_path / "windows", tmp_path / "windows.key"
    options = (
        "--bundle", str(real.path), "--name", "r1", "--queue-rows", "500",
        "--windows", str(windows), "--windows-key", str(key), "--windows-every-s", "0.05",
    )  # fmt: skip

    def written() -> int:
        return len(list(windows.rglob("*.window")))

    async def ask(url: str, count: int) -> None:
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:
            for _ in range(count):
                assert (await send(client, "red")).status_code == 200

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    done = False
    with pytest.raises(AssertionError):  # one of them is killed: no clean end
        async with (
            running(tmp_path / "two", real.trusted, *options) as killed,
            running(tmp_path / "one", real.trusted, *options) as kept,
        ):
            await asyncio.gather(ask(kept["rest_url"], 70), ask(killed["rest_url"], 70))
            await until(lambda: written() >= 2)
            killed["process"].kill()
            await ask(kept["rest_url"], 10)
            done = True
    assert done
    folder = WindowFolder(windows / SERVICE, SERVICE, open_secret(key), SystemClock())
    found = [read_window(folder.read(entry)) for entry in folder.entries()]
    assert {entry.bundle for entry in folder.entries()} == {real.digest}
    rows = sum(window.rows for window in found)
    assert 80 <= rows <= 150, "all of the one that ended, and what the other had written"
    assert len({window.embeddings["image"].origin for window in found}) == 1
