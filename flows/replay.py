"""Requests sent again: to rehearse a service, and to give a canary something to answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from flows.release.values import Probe
from validators.contracts.digest import Digest
from validators.contracts.errors import Unavailable
from validators.rollout.probe import HEADER

TIMEOUT_S = 30.0
SPOKEN_EVERY = 5
"""Of the probes with a recording, every fifth is spoken as well as written and shown."""

ReadObject = Callable[[Digest], bytes]


@dataclass(frozen=True, slots=True)
class Request:
    """One request over REST, in the form a client would send it."""

    probe: str
    modality: str
    content: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. `latency_ms` end to end, as the client saw it."""

    request: Request
    status: int
    latency_ms: float
    document: dict[str, Any]

    @property
    def answered(self) -> bool:
        return self.status == httpx.codes.OK


def requests_of(
    probes: Iterable[Probe], store: ReadObject, quarantine: ReadObject | None = None
) -> Iterator[Request]:
    """Written and shown requests of every probe, spoken ones of some (where raw audio may be read).

    Raw audio is sent to a gateway on this machine that serves the rehearsal alone.
    """
    for position, probe in enumerate(probes):
        if probe.text is not None:
            yield Request(probe.id, "text", probe.text.encode(), "text/plain")
        if probe.image is not None:
            yield Request(probe.id, "image", store(probe.image), "image/png")
        if probe.audio is not None and quarantine is not None and position % SPOKEN_EVERY == 0:
            yield Request(probe.id, "audio", quarantine(probe.audio), "audio/wav")


class Client:
    """Sends requests one after the other over one connection, each in a session of its own.

    `mark` makes the mark of a body, so that the gateway records none of them as live traffic.
    """

    def __init__(self, rest_url: str, mark: Callable[[bytes], str]) -> None:
        self._mark = mark
        self._http = httpx.Client(base_url=rest_url, timeout=TIMEOUT_S)
        self._sent = 0

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def send(self, request: Request) -> Reply:
        """Raises Unavailable where the gateway does not answer at all."""
        self._sent += 1
        started = time.perf_counter()
        try:
            response = self._http.post(
                "/v1/answer",
                content=request.content,
                headers={
                    "content-type": request.content_type,
                    "x-session-id": f"replay-{self._sent}",
                    HEADER: self._mark(request.content),
                },
            )
        except httpx.HTTPError as error:
            raise Unavailable(
                f"the gateway did not answer: {type(error).__name__}",
                where=str(self._http.base_url),
                remedy="Look at the gateway's log with `modalgate status`.",
            ) from error
        latency_ms = (time.perf_counter() - started) * 1000
        return Reply(request, response.status_code, latency_ms, response.json())
