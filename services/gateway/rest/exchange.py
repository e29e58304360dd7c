"""One HTTP exchange: the body within bounds, the call's headers, the caller hanging up."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from services.gateway.executor import expired_error
from services.gateway.identifiers import check_identifier, parse_timeout_ms
from services.gateway.origins import HEADER, origins_of_headers
from services.gateway.requests import Call
from validators.contracts.errors import Overloaded, TooLarge, Unsupported
from validators.contracts.ports import Clock

T = TypeVar("T")

_FALLBACK_RETRY_S = 1.0


class Disconnected(Exception):
    """The caller is gone: nothing can be answered."""


@dataclass(slots=True)
class ByteBudget:
    """What all request bodies together may hold in memory."""

    limit: int
    held: int = 0

    def take(self, size_bytes: int) -> None:
        """Raises Overloaded where it would be more than the limit."""
        if self.held + size_bytes > self.limit:
            raise Overloaded(
                "the gateway holds as many request bytes as it may",
                remedy="Try again after the time in Retry-After.",
                retry_after_s=_FALLBACK_RETRY_S,
            )
        self.held += size_bytes


@contextlib.asynccontextmanager
async def held_body(
    request: Request, limit: int, timeout_ms: float, budget: ByteBudget
) -> AsyncIterator[bytes]:
    """The whole body, counted against the budget until the exchange ends.

    Raises:
        TooLarge: more than `limit`.  Overloaded: more than the budget has left.
        Unsupported: a compressed body.  Disconnected: the caller left in the middle of it.
        DeadlineExceeded: it did not come within `timeout_ms`.
    """
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Unsupported(
            "compressed bodies are not read",
            where="content-encoding",
            remedy="Send the body as it is.",
        )
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:16]) > limit:
        raise _too_large(limit)
    chunks: list[bytes] = []
    taken = 0
    try:
        async with asyncio.timeout(timeout_ms / 1e3):
            async for chunk in request.stream():
                budget.take(len(chunk))
                taken += len(chunk)
                if taken > limit:
                    raise _too_large(limit)
                chunks.append(chunk)
        yield b"".join(chunks)
    except ClientDisconnect as error:
        raise Disconnected from error
    except TimeoutError as error:
        raise expired_error() from error
    finally:
        budget.held -= taken


def open_call(request: Request, clock: Clock) -> Call:
    """The call's identity and timeout from its headers; call it before the body is read.

    Raises:
        BadInput: a timeout, an id or an origin that cannot be used.
    """
    arrived_ns = clock.monotonic_ns()
    headers = request.headers
    return Call(
        request_id=check_identifier(headers.get("x-request-id")) or uuid.uuid4().hex,
        arrived_ns=arrived_ns,
        timeout_ms=parse_timeout_ms(headers.get("x-request-timeout-ms")),
        session_id=check_identifier(headers.get("x-session-id")),
        origins=origins_of_headers(headers.getlist(HEADER)),
    )


async def until_done(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The work's result; the work is cancelled when the caller hangs up. Read the body first.

    Raises:
        Disconnected: the caller left.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_wait_for_disconnect(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Disconnected
        return task.result()
    finally:
        for part in (task, gone):
            if part.cancel():
                with contextlib.suppress(asyncio.CancelledError):
                    await part


async def _wait_for_disconnect(request: Request) -> None:
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            return


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        f"the body has more than {limit} bytes", where="body", remedy="Send less at a time."
    )
