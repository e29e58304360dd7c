"""The paths of the data plane."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.gateway.handlers import Handlers
from services.gateway.inference import InferResponse
from services.gateway.requests import Answer, Call
from services.gateway.rest.converters import (
    HEADER_LENGTH,
    DecodedRequest,
    decode_request,
    encode_metadata,
    encode_response,
)
from services.gateway.rest.errors import (
    json_response,
    on_crash,
    on_domain_error,
    on_http_error,
)
from services.gateway.rest.exchange import (
    ByteBudget,
    Disconnected,
    held_body,
    open_call,
    until_done,
)
from services.gateway.rest.media import decode_body
from validators.contracts.errors import ModalgateError
from validators.rollout.probe import HEADER as PROBE
from validators.rollout.probe import is_probe

_GONE = 499  # by convention: the caller closed the connection; nobody reads this


class RestEndpoints:
    """Translates HTTP to `Handlers` and back."""

    def __init__(self, handlers: Handlers, token: str) -> None:
        self._handlers = handlers
        self._token = token  # of the control plane, which marks its probes by it
        self._budget = ByteBudget(handlers.settings.max_bodies_bytes)

    def routes(self) -> list[Route]:
        model = "/v2/models/{model}"
        version = model + "/versions/{version}"
        routes = [
            Route("/v2", self.server),
            Route("/v2/health/live", self.live),
            Route("/v2/health/ready", self.ready),
            Route("/v1/answer", self._guard(self.answer), methods=["POST"]),
            Route("/metrics", self.metrics),
        ]
        for base in (model, version):
            infer = Route(f"{base}/infer", self._guard(self.infer), methods=["POST"])
            routes += [Route(base, self.model), Route(f"{base}/ready", self.model_ready), infer]
        return routes

    async def server(self, _: Request) -> Response:
        return json_response(dataclasses.asdict(self._handlers.server_metadata()))

    async def live(self, _: Request) -> Response:
        return json_response({"live": True})

    async def ready(self, _: Request) -> Response:
        ready = self._handlers.ready
        return json_response({"ready": ready}, 200 if ready else 503)

    async def metrics(self, _: Request) -> Response:
        metrics = self._handlers.metrics
        return Response(metrics.render(), headers={"content-type": metrics.content_type})

    async def model(self, request: Request) -> Response:
        return json_response(encode_metadata(self._handlers.model_metadata(*_target(request))))

    async def model_ready(self, request: Request) -> Response:
        model, version = _target(request)
        ready = self._handlers.model_ready(model, version)
        return json_response({"name": model, "ready": ready}, 200 if ready else 503)

    async def infer(self, request: Request, call: Call, body: bytes) -> Response:
        model, version = _target(request)
        decoded = decode_request(body, request.headers.get(HEADER_LENGTH), model, version)
        call = call.renamed(decoded.id, decoded.request.parameters.get("session_id"))
        response = await until_done(request, self._handlers.infer(call, decoded.request))
        return _infer_response(response, decoded)

    async def answer(self, request: Request, call: Call, body: bytes) -> Response:
        media, session_id = await decode_body(body, request.headers.get("content-type", ""))
        probe = is_probe(self._token, body, request.headers.get(PROBE))
        call = dataclasses.replace(call.renamed(None, session_id), probe=probe)
        answer: Answer = await until_done(request, self._handlers.answer(call, media))
        return json_response(answer.document(), headers={"x-request-id": answer.request_id})

    def _guard(
        self, endpoint: Callable[[Request, Call, bytes], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Fixes the arrival, reads the body within its bounds, and forgets who hung up."""
        settings = self._handlers.settings

        async def guarded(request: Request) -> Response:
            call = open_call(request, self._handlers.clock)
            try:
                async with held_body(
                    request,
                    settings.max_body_bytes,
                    call.timeout_ms or settings.max_timeout_ms,
                    self._budget,
                ) as body:
                    response = await endpoint(request, call, body)
            except Disconnected:
                return Response(status_code=_GONE)
            return response

        return guarded


def make_app(handlers: Handlers, token: str) -> Starlette:
    """The data plane as an ASGI application."""
    return Starlette(
        routes=RestEndpoints(handlers, token).routes(),
        exception_handlers={
            ModalgateError: on_domain_error,
            HTTPException: on_http_error,
            Exception: on_crash,
        },
    )


def _target(request: Request) -> tuple[str, str | None]:
    return request.path_params["model"], request.path_params.get("version")


def _infer_response(response: InferResponse, decoded: DecodedRequest) -> Response:
    body, header_length = encode_response(response, decoded)
    if header_length is None:
        return Response(body, media_type="application/json")
    headers = {HEADER_LENGTH: str(header_length)}
    return Response(body, headers=headers, media_type="application/octet-stream")
