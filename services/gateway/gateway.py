"""The gateway as a whole: three servers over one set of handlers, brought up and drained."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path

from services.gateway.admin.endpoints import make_admin_app
from services.gateway.admin.handlers import AdminHandlers
from services.gateway.encoders import LoadedEncoder, Loaders, replace_engine
from services.gateway.executor import EngineExecutor
from services.gateway.grpc.server import GrpcServer
from services.gateway.handlers import Handlers
from services.gateway.recording import Recorder
from services.gateway.rest.endpoints import make_app
from services.gateway.rest.server import RestServer, bind
from services.gateway.revision import LoadedRevision, load_revision
from services.gateway.revisions import Revisions
from services.gateway.scheduler import FifoScheduler
from services.gateway.settings import GatewaySettings
from services.gateway.traffic import Traffic
from services.telemetry.metrics import GatewayMetrics
from validators.contracts.digest import Digest
from validators.contracts.ports import Clock


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where to listen. The control plane is for this machine only: always loopback."""

    host: str = "127.0.0.1"
    rest_port: int = 0
    grpc_port: int = 0
    admin_port: int = 0


class Gateway:
    """One service's process. Create and use inside the event loop."""

    def __init__(
        self,
        service: str,
        token: str,
        loaders: Loaders,
        clock: Clock,
        *,
        settings: GatewaySettings | None = None,
        addresses: Addresses | None = None,
    ) -> None:
        settings, addresses = settings or GatewaySettings(), addresses or Addresses()
        metrics = GatewayMetrics()
        scheduler = FifoScheduler(settings.queue, settings.workers)
        executor = EngineExecutor(scheduler, clock, metrics, settings.workers)
        self.revisions = Revisions(service)
        self.recorder = Recorder(clock, metrics.count_recorded) if settings.record else None
        self.handlers = Handlers(
            self.revisions, executor, metrics, clock, settings,
            record=self.recorder.offer if self.recorder else None,
        )  # fmt: skip
        self._loaders, self._metrics = loaders, metrics
        self.admin_handlers = AdminHandlers(self.revisions, self._load, self._replace)
        with contextlib.ExitStack() as undo:  # one port taken: the others are given back
            rest = undo.enter_context(bind(addresses.host, addresses.rest_port))
            admin = undo.enter_context(bind("127.0.0.1", addresses.admin_port))
            self._grpc = GrpcServer(self.handlers, addresses.host, addresses.grpc_port)
            undo.pop_all()
        idle_s = settings.drain_idle_s
        self._rest = RestServer(make_app(self.handlers, token), rest, idle_s)
        self._admin = RestServer(make_admin_app(self.admin_handlers, token), admin, 0.0)

    @property
    def rest_url(self) -> str:
        return self._rest.url

    @property
    def admin_url(self) -> str:
        return self._admin.url

    @property
    def grpc_address(self) -> str:
        return self._grpc.address

    async def start(self) -> None:
        """Returns when all three servers take requests."""
        await asyncio.gather(self._rest.start(), self._grpc.start(), self._admin.start())

    async def serve_first(self, name: str, path: Path) -> None:
        """Load a bundle and give it all the traffic. Raises what `load_revision` raises."""
        await self.admin_handlers.add(name, path, None)
        await self.admin_handlers.route(Traffic(stable=name))

    async def drain(self) -> None:
        """Readiness goes first; what is under way is answered; then everything is freed.

        Connections are told to close while requests are still taken, so that none is cut between
        two requests.
        """
        settings = self.handlers.settings
        self.handlers.health.draining = True
        self._rest.close_after_answers()
        await asyncio.sleep(settings.drain_grace_s)
        await asyncio.gather(self._rest.stop(), self._grpc.stop(), self._admin.stop())
        self.handlers.executor.close()
        if self.recorder is not None:
            await asyncio.to_thread(self.recorder.close)
        for served in self.revisions.all():
            served.revision.close()

    def _load(self, name: str, path: Path, expected: Digest | None) -> LoadedRevision:
        count = self._metrics.count_shape_request
        return load_revision(name, path, self._loaders, expected, count_shape=count)

    def _replace(
        self, revision: LoadedRevision, encoder: LoadedEncoder, sealed: bytes, path: Path
    ) -> None:
        replace_engine(encoder, sealed, path, self._loaders)
        self._metrics.count_swap(encoder.contract.name, revision.name)
