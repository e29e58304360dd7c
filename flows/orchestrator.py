"""The embedded orchestrator: Prefect's own server as a child that ends with whoever started it.

Prefect can start such a server by itself, and leaves it running when its starter is killed. This
one watches its parent, so that a killed release leaves no process behind.
"""

from __future__ import annotations

import argparse
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import uvicorn

from validators.contracts.errors import Unavailable

START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 10.0
_LOOK_S = 0.5
_APPLICATION = "prefect.server.api.server:create_app"


@contextmanager
def embedded_orchestrator() -> Iterator[str | None]:
    """Run a server while the block lasts; its API's URL, or None where PREFECT_API_URL names one.

    Raises:
        Unavailable: the server did not come up.
    """
    if os.environ.get("PREFECT_API_URL"):
        yield None
        return
    child = subprocess.Popen(
        [sys.executable, "-m", "flows.orchestrator", "--parent", str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env={**os.environ, "PREFECT_UI_ENABLED": "0"},
        start_new_session=True,  # an interrupt at the terminal is for the release, which stops this
    )
    try:
        yield _await_start(child)
    finally:
        child.terminate()
        try:
            child.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if child.stdout is not None:
            child.stdout.close()


def _await_start(child: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + START_TIMEOUT_S
    assert child.stdout is not None  # noqa: S101 a pipe was asked for
    ready, _, _ = select.select([child.stdout], [], [], START_TIMEOUT_S)
    line = child.stdout.readline().strip() if ready else b""
    while line.isdigit() and child.poll() is None and time.monotonic() < deadline:
        url = f"http://127.0.0.1:{int(line)}/api"
        try:
            if httpx.get(f"{url}/health", timeout=5).status_code == httpx.codes.OK:
                return url
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise Unavailable(
        "the embedded orchestrator did not start",
        where=f"exit code {child.poll()}",
        remedy="Run `prefect server start` and set PREFECT_API_URL, or look at its error.",
    )


def serve(parent: int) -> None:
    """The child: say the port, serve until told to end or until the parent is gone."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", 0))
        print(listening.getsockname()[1], flush=True)
        config = uvicorn.Config(_APPLICATION, factory=True, log_level="error", lifespan="on")
        server = uvicorn.Server(config)
        threading.Thread(target=_end_with, args=(parent, server), daemon=True).start()
        server.run(sockets=[listening])


def _end_with(parent: int, server: uvicorn.Server) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    server.should_exit = True
    time.sleep(STOP_TIMEOUT_S)
    os._exit(0)  # nobody is left to wait for a slow end


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flows.orchestrator")
    parser.add_argument("--parent", type=int, required=True)
    serve(parser.parse_args().parent)


if __name__ == "__main__":
    main()
