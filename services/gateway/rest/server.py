"""A REST server on a socket that is bound already, started and drained from outside."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn
from starlette.applications import Starlette
from starlette.types import Message, Receive, Scope, Send

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

    def __init__(self, app: Starlette, listener: socket.socket, idle_s: float) -> None:
        """`idle_s`: how long connections without a request are kept once it stops."""
        self._app = app
        self._listener = listener
        self._url = _url_of(listener)
        self._idle_s = idle_s
        self._closing = False
        config = uvicorn.Config(
            self._answer,
            http="httptools",
            loop="uvloop",
            ws="none",
            lifespan="off",
            interface="asgi3",
            proxy_headers=False,
            log_config=None,
            access_log=False,
            server_header=False,
            backlog=_BACKLOG,
        )
        self._server = _Uvicorn(config)
        self._task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return self._url

    async def start(self) -> None:
        """Returns when requests are taken."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        while not self._server.started:
            if self._task.done():
                await self._task
                raise Unavailable("the REST server ended while it started")
            await asyncio.sleep(_POLL_S)

    def close_after_answers(self) -> None:
        """From now on every answer tells the caller to use another connection."""
        self._closing = True

    async def stop(self) -> None:
        """No new connections; returns when every request that reached a connection is answered."""
        self._closing = True
        if self._task is not None and not self._task.done():
            await self._stop_listening()
            await self._await_idle()
        self._server.should_exit = True
        if self._task is not None:
            await self._task

    async def _stop_listening(self) -> None:
        """Close the port, and take over whom the system had let in but nobody had greeted yet."""
        queue = self._listener.dup()
        queue.setblocking(False)
        for server in self._server.servers:
            server.close()
        greeted = []
        with queue, contextlib.suppress(BlockingIOError):
            while True:
                greeted.append(queue.accept()[0])
        loop = asyncio.get_running_loop()
        for connection in greeted:
            await loop.connect_accepted_socket(self._protocol, connection)

    def _protocol(self) -> asyncio.Protocol:
        config = self._server.config
        protocol: asyncio.Protocol = config.http_protocol_class(  # type: ignore[call-arg]
            config=config, server_state=self._server.server_state, app_state={}
        )
        return protocol

    async def _await_idle(self) -> None:
        """A request may be on its way on a connection that is idle here: wait a while for it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._idle_s):
                while self._server.server_state.connections:  # noqa: ASYNC110 - uvicorn's own set
                    await asyncio.sleep(_POLL_S)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_and_close(message: Message) -> None:
            if self._closing and message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            await send(message)

        # Starlette raises again what `on_crash` has answered and logged without its message; from
        # here uvicorn would log the message too, which may quote the request.
        with contextlib.suppress(Exception):
            await self._app(scope, receive, send_and_close)


def _url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


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
