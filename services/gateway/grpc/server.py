"""A gRPC server, started and drained from outside."""

from __future__ import annotations

import grpc

from services.gateway.grpc.endpoints import GrpcEndpoints
from services.gateway.handlers import Handlers
from validators.contracts.errors import Unavailable


class GrpcServer:
    """grpc.aio on the running event loop. Port 0 lets the system choose."""

    def __init__(self, handlers: Handlers, host: str, port: int) -> None:
        settings = handlers.settings
        self._grace_s = settings.drain_timeout_s
        self._host = host
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", settings.max_body_bytes),
                ("grpc.max_send_message_length", settings.max_body_bytes),
                ("grpc.so_reuseport", 0),
            ],
            maximum_concurrent_rpcs=settings.max_concurrent_calls,
        )
        self._server.add_generic_rpc_handlers(GrpcEndpoints(handlers).services())
        self.port = self._bind(host, port)

    @property
    def address(self) -> str:
        return f"{self._host}:{self.port}"

    async def start(self) -> None:
        await self._server.start()

    async def stop(self) -> None:
        """No new calls; returns when those under way have ended, or the drain's time is over."""
        await self._server.stop(self._grace_s)

    def _bind(self, host: str, port: int) -> int:
        try:
            bound = self._server.add_insecure_port(f"{host}:{port}")
        except RuntimeError:  # grpc's word for an address that cannot be bound
            bound = 0
        if not bound:
            raise Unavailable(
                f"port {port} on {host} cannot be bound for gRPC",
                where=f"{host}:{port}",
                remedy="Choose another port, or 0 to let the system choose.",
            )
        return bound
