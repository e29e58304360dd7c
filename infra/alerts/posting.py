"""One HTTP post to a receiver of alerts: bounded in time and in what is read, never redirected."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import httpx

from validators.contracts.errors import BadInput, Refused, Unavailable
from validators.contracts.pipeline_keys import RECEIVER

DEADLINE_S = 10.0
"""For everything: connecting, sending, and the first line of the answer."""

MAX_BODY_BYTES = 256 * 1024


def require_receiver(url: str) -> str:
    """The address, where alerts may be sent to it.

    Raises:
        BadInput: neither https nor this machine, or with a user or password in it.
    """
    if re.fullmatch(RECEIVER, url) is None:
        raise BadInput(
            "alerts go to https addresses or to this machine only",
            where=_host(url),
            remedy="Write https://host/path, or http://127.0.0.1:port/path.",
        )
    return url


def post(
    url: str, body: bytes, headers: Mapping[str, str], *, deadline_s: float = DEADLINE_S
) -> None:
    """Returns where the receiver answered with 2xx. What it says beyond that is not read.

    Raises:
        Unavailable: no answer in time, or one that says to try again (429, 5xx).
        Refused: any other answer, redirections among them.  BadInput: more than a message may be.
    """
    if len(body) > MAX_BODY_BYTES:
        raise BadInput(f"a message of {len(body)} bytes is too large", where=_host(url))
    # In a thread of its own, since the caller may run inside an event loop.
    with ThreadPoolExecutor(1, thread_name_prefix="alert") as pool:
        status = pool.submit(asyncio.run, _status(url, body, headers, deadline_s)).result()
    if 200 <= status < 300:
        return
    if status == 429 or status >= 500:
        raise Unavailable(f"the receiver answered {status}", where=_host(url))
    what = "redirects, and alerts do not follow" if 300 <= status < 400 else "does not take it"
    raise Refused(
        f"the receiver {what} ({status})",
        where=_host(url),
        remedy="Give the address that takes the alerts itself, and check its secret.",
    )


async def _status(url: str, body: bytes, headers: Mapping[str, str], deadline_s: float) -> int:
    loopback = url.startswith("http://")  # a proxy has no business with this machine's own ports
    try:
        async with (
            asyncio.timeout(deadline_s),
            httpx.AsyncClient(
                follow_redirects=False, timeout=deadline_s, trust_env=not loopback
            ) as client,
            client.stream("POST", url, content=body, headers=dict(headers)) as answer,
        ):
            return answer.status_code
    except (TimeoutError, httpx.TimeoutException) as error:
        raise Unavailable(
            f"the receiver did not answer within {deadline_s:g} s", where=_host(url)
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise Unavailable(
            f"the receiver cannot be reached: {type(error).__name__}", where=_host(url)
        ) from error


def _host(url: str) -> str:
    """Scheme, host and port: a path may hold a token."""
    found = re.match(r"https?://[A-Za-z0-9.\[\]:-]+", url)
    return found[0] if found and "@" not in url.split("/", 3)[2] else "the receiver's address"
