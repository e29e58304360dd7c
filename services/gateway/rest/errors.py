"""Errors as HTTP answers."""

from __future__ import annotations

import logging
import math
import traceback

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from services.gateway.status import status_of
from validators.contracts.errors import ModalgateError

_log = logging.getLogger(__name__)


def error_response(path: str, error: ModalgateError) -> Response:
    """The error as JSON: an object of what, where, remedy; under /v2 the protocol's string."""
    headers = {}
    if error.retry_after_s is not None:
        headers["retry-after"] = str(max(1, math.ceil(error.retry_after_s)))
    body = str(error) if path.startswith("/v2") else error.document()
    return json_response({"error": body}, status_of(error).http, headers)


def json_response(
    document: object, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    content = msgspec.json.encode(document)
    return Response(content, status, headers, media_type="application/json")


async def on_domain_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ModalgateError)  # noqa: S101 - registered for these only
    return error_response(request.url.path, error)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Unknown paths and methods, in the words of all other errors."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for these only
    document = {
        "what": f"{error.detail}",
        "where": f"{request.method} {request.url.path[:200]}",
        "remedy": "Use a path and method of the documentation.",
    }
    body = f"{error.detail}" if request.url.path.startswith("/v2") else document
    return json_response({"error": body}, error.status_code, dict(error.headers or {}))


async def on_crash(request: Request, error: Exception) -> Response:
    """What nobody foresaw: logged by type and place, since its message may quote the request."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    _log.error("request failed with %s\n%s", type(error).__name__, frames)
    return error_response(
        request.url.path,
        ModalgateError("the request failed for a reason that is not its own"),
    )
