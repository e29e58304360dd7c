"""A REST server on a socket that is bound already, started and drained from outside."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn
from starlette.applications import Starlette

from validators.contracts.errors import Unavailable

_BACKLOG = 2048
_POLL_S = 0.01


class _Uvicorn(uvicorn.Server):
    """Leaves the process' signals to whoever wires the gateway."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class RestServer:
    """uvicorn on uvloop and httptools."""

    def __init__(self, app: Starlette, listener: socket.socket) -> None:
        self._listener = listener
        config = uvicorn.Config(
            app,
            http="httptools",
            loop="uvloop",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            backlog=_BACKLOG,
        )
        self._server = _Uvicorn(config)
        self._task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        host, port = self._listener.getsockname()[:2]
        return f"http://{host}:{port}"

    async def start(self) -> None:
        """Returns when requests are taken."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        while not self._server.started:
            if self._task.done():
                await self._task
                raise Unavailable("the REST server ended while it started")
            await asyncio.sleep(_POLL_S)

    async def stop(self) -> None:
        """No new connections; returns when every exchange under way has been answered."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task


def bind(host: str, port: int) -> socket.socket:
    """A listening address; port 0 lets the system choose.

    Raises:
        Unavailable: the port is taken, or not ours to take.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named TCP, or asyncio would leave Nagle's algorithm on: 40 ms for every small answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise Unavailable(
            f"port {port} on {host} cannot be bound: {error.strerror}",
            where=f"{host}:{port}",
            remedy="Choose another port, or 0 to let the system choose.",
        ) from error
    return listener
