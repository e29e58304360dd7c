"""The paths of the control plane. Every one needs the bearer token."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.gateway.admin.handlers import AdminHandlers
from services.gateway.identifiers import check_identifier
from services.gateway.rest.errors import (
    json_response,
    on_crash,
    on_domain_error,
    on_http_error,
)
from services.gateway.rest.exchange import ByteBudget, held_body
from services.gateway.traffic import Traffic
from validators.contracts.digest import plain, require_digest
from validators.contracts.errors import BadInput, ModalgateError

T = TypeVar("T")

_MAX_BODY_BYTES = 64 * 1024
_MAX_BODY_MS = 10_000.0


class NewRevision(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    path: str
    bundle: str | None = None


class NewEngine(msgspec.Struct, forbid_unknown_fields=True):
    manifest: str
    engine: str


class NewTraffic(msgspec.Struct, forbid_unknown_fields=True):
    stable: str | None
    canary: str | None = None
    percent: int = 0


class AdminEndpoints:
    """Translates HTTP to `AdminHandlers` and back."""

    def __init__(self, handlers: AdminHandlers, token: str) -> None:
        self._handlers = handlers
        self._expected = f"Bearer {token}".encode()
        self._budget = ByteBudget(16 * _MAX_BODY_BYTES)

    def routes(self) -> list[Route]:
        guard = self._guard
        return [
            Route("/admin/status", guard(self.status), methods=["GET"]),
            Route("/admin/stats", guard(self.stats), methods=["GET"]),
            Route("/admin/revisions", guard(self.add), methods=["POST"]),
            Route("/admin/revisions/{name}", guard(self.remove), methods=["DELETE"]),
            Route(
                "/admin/revisions/{name}/engines/{encoder}", guard(self.replace), methods=["PUT"]
            ),
            Route("/admin/shapes", guard(self.shapes), methods=["GET"]),
            Route("/admin/traffic", guard(self.route), methods=["PUT"]),
        ]

    async def status(self, _: Request) -> Response:
        return self._status()

    async def stats(self, _: Request) -> Response:
        return json_response(plain(self._handlers.stats()))

    async def add(self, request: Request) -> Response:
        wanted = await self._read(request, NewRevision)
        name = check_identifier(wanted.name)
        if name is None or not Path(wanted.path).is_absolute():
            raise BadInput(
                "a revision needs a name and an absolute path",
                where="name, path",
                remedy="Give both.",
            )
        bundle = None if wanted.bundle is None else require_digest(wanted.bundle)
        await self._handlers.add(name, Path(wanted.path), bundle)
        return self._status()

    async def remove(self, request: Request) -> Response:
        await self._handlers.remove(request.path_params["name"])
        return self._status()

    async def replace(self, request: Request) -> Response:
        wanted = await self._read(request, NewEngine)
        manifest, engine = Path(wanted.manifest), Path(wanted.engine)
        if not (manifest.is_absolute() and engine.is_absolute()):
            raise BadInput(
                "an engine is given by two absolute paths",
                where="manifest, engine",
                remedy="Give the path of its sealed manifest, and of its own file.",
            )
        names = request.path_params
        now = await self._handlers.replace(names["name"], names["encoder"], manifest, engine)
        document = {
            "revision": names["name"],
            "encoder": names["encoder"],
            "key": now.key,
            "engine": now.engine,
            "profiles": now.spec.profiles,
        }
        return json_response(plain(document))

    async def shapes(self, _: Request) -> Response:
        return json_response(plain(self._handlers.shapes()))

    async def route(self, request: Request) -> Response:
        wanted = await self._read(request, NewTraffic)
        await self._handlers.route(Traffic(wanted.stable, wanted.canary, wanted.percent))
        return self._status()

    def _status(self) -> Response:
        handlers = self._handlers
        return json_response(
            {
                "service": handlers.service,
                "traffic": plain(handlers.traffic),
                "revisions": plain(handlers.statuses()),
            }
        )

    async def _read(self, request: Request, kind: type[T]) -> T:
        async with held_body(request, _MAX_BODY_BYTES, _MAX_BODY_MS, self._budget) as body:
            try:
                return msgspec.json.decode(body, type=kind)
            except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
                raise BadInput(f"the body cannot be used: {error}", where="body") from error

    def _guard(
        self, endpoint: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def guarded(request: Request) -> Response:
            given = request.headers.get("authorization", "").encode()
            if not hmac.compare_digest(given, self._expected):
                return _unauthorised()
            return await endpoint(request)

        return guarded


def make_admin_app(handlers: AdminHandlers, token: str) -> Starlette:
    """The control plane as an ASGI application."""
    if not token:
        raise BadInput("the admin token is empty", remedy="Write a token into the token file.")
    return Starlette(
        routes=AdminEndpoints(handlers, token).routes(),
        exception_handlers={
            ModalgateError: on_domain_error,
            HTTPException: on_http_error,
            Exception: on_crash,
        },
    )


def _unauthorised() -> Response:
    document = {
        "what": "the bearer token is missing or wrong",
        "where": "authorization",
        "remedy": "Send the token of the gateway's token file.",
    }
    return json_response({"error": document}, 401, {"www-authenticate": "Bearer"})
