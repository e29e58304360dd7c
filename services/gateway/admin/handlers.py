"""What an operator's machinery does to the gateway, with no transport in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from services.gateway.revision import LoadedRevision
from services.gateway.revisions import Revisions
from services.gateway.traffic import Traffic
from validators.contracts.deployment import RevisionStats, RevisionStatus
from validators.contracts.digest import Digest
from validators.contracts.errors import Conflict

Load = Callable[[str, Path, Digest | None], LoadedRevision]
"""Name, materialised folder, the digest it must have → a revision. Blocking."""


class AdminHandlers:
    """Loads, unloads and routes. One change at a time; requests go on meanwhile."""

    def __init__(self, revisions: Revisions, load: Load) -> None:
        self._revisions = revisions
        self._load = load
        self._lock = asyncio.Lock()

    @property
    def service(self) -> str:
        return self._revisions.service

    @property
    def traffic(self) -> Traffic:
        return self._revisions.traffic

    def statuses(self) -> tuple[RevisionStatus, ...]:
        traffic = self._revisions.traffic
        return tuple(
            RevisionStatus(
                name=served.revision.name,
                bundle=served.revision.digest,
                ready=not served.leaving,
                percent=traffic.share(served.revision.name),
                message="leaving" if served.leaving else "",
            )
            for served in self._revisions.all()
        )

    def stats(self) -> tuple[RevisionStats, ...]:
        return tuple(served.stats() for served in self._revisions.all())

    async def add(self, name: str, path: Path, bundle: Digest | None) -> None:
        """Load a revision, without traffic. Loading what is loaded already does nothing.

        Raises:
            Conflict: the name belongs to another bundle.  Refused, NotFound: as `load_revision`.
        """
        async with self._lock:
            there = self._revisions.find(name)
            if there is not None:
                if bundle not in (None, there.revision.digest) or there.leaving:
                    raise Conflict(f"revision {name!r} is another bundle", where=name)
                return
            revision = await asyncio.to_thread(self._load, name, path, bundle)
            try:
                self._revisions.add(revision)
            except BaseException:
                revision.close()
                raise

    async def remove(self, name: str) -> None:
        """Drain and unload a revision. Raises NotFound; Conflict where it has traffic."""
        revision = await self._revisions.remove(name)
        await asyncio.to_thread(revision.close)

    async def route(self, traffic: Traffic) -> None:
        """Swap the traffic split. Raises NotFound where it names what is not loaded."""
        async with self._lock:
            self._revisions.set_traffic(traffic)
