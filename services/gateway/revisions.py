"""The revisions that are loaded, which of them gets a request, and what became of it.

Used from one event loop; swaps are single assignments, so no request sees half of one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from services.gateway.revision import LoadedRevision
from services.gateway.traffic import Traffic
from validators.contracts.deployment import RevisionStats
from validators.contracts.errors import BadInput, Conflict, NotFound, Unavailable

LATENCY_SAMPLE = 2048
"""How many recent latencies are kept per revision."""


@dataclass(slots=True)
class Served:
    """A loaded revision with its counters."""

    revision: LoadedRevision
    requests: int = 0
    errors: int = 0
    degraded: int = 0
    in_flight: int = 0
    leaving: bool = False
    latency_ms: deque[float] = field(default_factory=lambda: deque(maxlen=LATENCY_SAMPLE))
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    def stats(self) -> RevisionStats:
        return RevisionStats(
            self.revision.name, self.requests, self.errors, self.degraded, tuple(self.latency_ms)
        )


class Revisions:
    """All loaded revisions of one service, and the traffic between them."""

    def __init__(self, service: str) -> None:
        self.service = service
        self._served: dict[str, Served] = {}
        self._traffic = Traffic()

    @property
    def traffic(self) -> Traffic:
        return self._traffic

    @property
    def ready(self) -> bool:
        """A request without wishes of its own would be served."""
        return self._traffic.stable in self._served

    def names(self) -> tuple[str, ...]:
        return tuple(self._served)

    def all(self) -> tuple[Served, ...]:
        return tuple(self._served.values())

    def find(self, name: str) -> Served | None:
        return self._served.get(name)

    def add(self, revision: LoadedRevision) -> None:
        """Make a revision available; it gets no traffic by that.

        Raises:
            Conflict: another bundle has that name.  BadInput: it is of another service.
        """
        if revision.bundle.service != self.service:
            raise BadInput(
                f"the bundle is of service {revision.bundle.service!r}, not {self.service!r}",
                where=revision.digest,
                remedy="Deploy it to its own service.",
            )
        if revision.name in self._served:
            raise Conflict(f"there is a revision {revision.name!r} already", where=revision.name)
        self._served[revision.name] = Served(revision)

    def set_traffic(self, traffic: Traffic) -> None:
        """Swap the split, whole. Raises NotFound where it names what is not loaded."""
        for name in (traffic.stable, traffic.canary):
            if name is not None:
                self._require(name)
        self._traffic = traffic

    def choose(self, key: str, version: str | None = None) -> Served:
        """The revision for a key, or the one asked for by name.

        Raises:
            NotFound: no such revision.  Unavailable: nothing serves yet.
        """
        if version:
            return self._require(version)
        name = self._traffic.choose(key)
        if name is None:
            raise Unavailable(
                f"no revision of {self.service} has traffic yet",
                where=self.service,
                remedy="Deploy a release.",
                retry_after_s=1.0,
            )
        return self._served[name]

    @contextlib.contextmanager
    def lease(self, served: Served) -> Iterator[LoadedRevision]:
        """Hold a revision while a request runs on it: it is not unloaded before the end."""
        served.in_flight += 1
        served.idle.clear()
        try:
            yield served.revision
        finally:
            served.in_flight -= 1
            if not served.in_flight:
                served.idle.set()

    async def remove(self, name: str) -> LoadedRevision:
        """Take a revision out once its requests are done; the caller closes it.

        Raises:
            NotFound: no such revision.  Conflict: it has traffic.
        """
        served = self._require(name)
        if name in (self._traffic.stable, self._traffic.canary):
            raise Conflict(
                f"revision {name!r} has traffic",
                where=name,
                remedy="Move the traffic to another revision first.",
            )
        served.leaving = True
        if served.in_flight:
            await served.idle.wait()
        self._served.pop(name, None)
        return served.revision

    def _require(self, name: str) -> Served:
        served = self._served.get(name)
        if served is None or served.leaving:
            raise NotFound(
                f"there is no revision {name[:80]!r} of {self.service}",
                remedy=f"Use one of: {', '.join(self._served) or 'none is loaded'}.",
            )
        return served
