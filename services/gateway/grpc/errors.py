"""Errors as gRPC statuses."""

from __future__ import annotations

import functools
import logging
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import grpc

from services.gateway.status import status_of
from validators.contracts.errors import ModalgateError

Request = TypeVar("Request")
Response = TypeVar("Response")
Method = Callable[[Any, Request, "grpc.aio.ServicerContext[Any, Any]"], Awaitable[Response]]

_log = logging.getLogger(__name__)


def code_of(error: ModalgateError) -> grpc.StatusCode:
    code: grpc.StatusCode = grpc.StatusCode[status_of(error).grpc]
    return code


def with_statuses(method: Method[Request, Response]) -> Method[Request, Response]:
    """The method, whose errors end the call with their status.

    Where trying again can help, `grpc-retry-pushback-ms` says after how long.
    """

    @functools.wraps(method)
    async def guarded(
        self: Any, request: Request, context: grpc.aio.ServicerContext[Any, Any]
    ) -> Response:
        try:
            return await method(self, request, context)
        except ModalgateError as error:
            trailers: tuple[tuple[str, str], ...] = ()
            if error.retry_after_s is not None:
                trailers = (("grpc-retry-pushback-ms", str(round(error.retry_after_s * 1e3))),)
            await context.abort(code_of(error), str(error), trailers)
            raise AssertionError("abort raises") from error
        except Exception as error:
            if isinstance(error, grpc.aio.AbortError):
                raise
            # Logged by type and place: the message may quote the request.
            frames = "".join(traceback.format_tb(error.__traceback__))
            _log.error("call failed with %s\n%s", type(error).__name__, frames)
            await context.abort(grpc.StatusCode.INTERNAL, "the call failed")
            raise AssertionError("abort raises") from error

    return guarded
