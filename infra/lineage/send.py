"""Events to an OpenLineage server, in bounded time, whatever that server does.

    OPENLINEAGE_URL       where the server is; unset: nothing is sent
    OPENLINEAGE_ENDPOINT  path of its API; default api/v1/lineage
    OPENLINEAGE_API_KEY   sent as a bearer token, never logged
    OPENLINEAGE_DISABLED  "true": nothing is sent

A server may be dead, slow, or answer one byte a second for an hour: the sending runs in a thread
that is left behind when its time is over, and the first failure ends it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from openlineage.client.event_v2 import RunEvent
from openlineage.client.transport.http import (
    ApiKeyTokenProvider,
    HttpConfig,
    HttpTransport,
    get_session,
)

BUDGET_S = 10.0
"""Time for all events of one release together."""

_REQUEST_S = 5.0
_DEFAULT_ENDPOINT = "api/v1/lineage"


@dataclass(frozen=True, slots=True)
class Destination:
    """An OpenLineage server. Its key is no part of what is printed of it."""

    url: str = field(repr=False)  # may hold a password
    endpoint: str = _DEFAULT_ENDPOINT
    api_key: str = field(default="", repr=False)

    @property
    def host(self) -> str:
        """For messages: the host and port, never the user's name or password."""
        try:
            parts = urlsplit(self.url)
            port = f":{parts.port}" if parts.port else ""
        except ValueError:
            return "an address that is none"
        return f"{parts.hostname or 'no host'}{port}"


@dataclass(frozen=True, slots=True)
class Sent:
    """How many events the server took. `problem` is a clause, empty where it took all."""

    events: int
    problem: str = ""


def destination_of(environment: Mapping[str, str]) -> Destination | None:
    """Where the environment asks for events to be sent, if anywhere."""
    url = environment.get("OPENLINEAGE_URL", "").strip()
    if not url or environment.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return None
    return Destination(
        url,
        environment.get("OPENLINEAGE_ENDPOINT", "").strip() or _DEFAULT_ENDPOINT,
        environment.get("OPENLINEAGE_API_KEY", "").strip(),
    )


def send_events(
    events: Sequence[RunEvent], destination: Destination, *, budget_s: float = BUDGET_S
) -> Sent:
    """Send events in order until one fails or the time is over. Never raises."""
    sending = _Sending(events, destination, budget_s)
    worker = threading.Thread(target=sending.run, name="openlineage", daemon=True)
    worker.start()
    worker.join(budget_s)
    return sending.stop()


class _Sending:
    def __init__(
        self, events: Sequence[RunEvent], destination: Destination, budget_s: float
    ) -> None:
        self._events, self._destination, self._budget_s = events, destination, budget_s
        self._lock = threading.Lock()
        self._taken, self._problem, self._over = 0, "", False

    def run(self) -> None:
        try:
            self._send()
        except Exception as error:  # the library's own and its session's: anything may come out
            with self._lock:
                self._problem = self._problem or _clause(error)

    def stop(self) -> Sent:
        """End the sending, and say what was sent by now."""
        with self._lock:
            self._over = True
            late = f"it took longer than {self._budget_s:g} s"
            done = self._taken == len(self._events)
            return Sent(self._taken, "" if done else self._problem or late)

    def _send(self) -> None:
        session = get_session()
        session.stream = True  # its answers are of no interest, however long they are
        session.max_redirects = 3
        key = self._destination.api_key
        config = HttpConfig(
            self._destination.url,
            endpoint=self._destination.endpoint,
            timeout=min(_REQUEST_S, self._budget_s),
            session=session,
            retry={"total": 0},
        )
        if key:
            config.auth = ApiKeyTokenProvider({"apiKey": key})
        transport = HttpTransport(config)
        try:
            for event in self._events:
                if self._over:
                    return
                transport.emit(event)
                with self._lock:
                    self._taken += 1
        finally:
            transport.close()


def _clause(error: Exception) -> str:
    """What went wrong, without the address, which may hold a password."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"it answered {response.status_code}"
    kinds = {kind.__name__ for kind in type(error).__mro__}  # of the client's HTTP library
    if "Timeout" in kinds:
        return "it did not answer in time"
    if "ConnectionError" in kinds:
        return "it could not be reached"
    return f"the client said {type(error).__name__}"
