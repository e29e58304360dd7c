"""What an operator's machinery does to the gateway, with no transport in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from services.gateway.encoders import LoadedEncoder
from services.gateway.revision import LoadedRevision
from services.gateway.revisions import Revisions
from services.gateway.traffic import Traffic
from validators.contracts.deployment import RevisionStats, RevisionStatus
from validators.contracts.digest import Digest
from validators.contracts.engine import EngineManifest
from validators.contracts.errors import Conflict, NotFound, TooLarge

Replace = Callable[[LoadedRevision, LoadedEncoder, bytes, Path], None]
"""Another engine for an encoder: sealed manifest's document, engine's file. Blocking."""

MAX_MANIFEST_BYTES = 16 * 1024 * 1024

Load = Callable[[str, Path, Digest | None], LoadedRevision]
"""Name, materialised folder, the digest it must have → a revision. Blocking."""


class AdminHandlers:
    """Loads, unloads and routes. One change at a time; requests go on meanwhile."""

    def __init__(self, revisions: Revisions, load: Load, replace: Replace) -> None:
        self._revisions = revisions
        self._load = load
        self._replace = replace
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

    async def replace(
        self, name: str, encoder: str, manifest: Path, engine: Path
    ) -> EngineManifest:
        """Swap in another engine of an encoder while requests go on; returns what serves now.

        Raises:
            NotFound: no such revision, encoder or file.  Conflict: the revision is leaving.
            Refused: the engine does not verify, or is no replacement; the old one goes on.
        """
        async with self._lock:
            served = self._revisions.find(name)
            if served is None:
                raise NotFound(f"there is no revision {name[:80]!r}", where=name[:80])
            loaded = served.revision.encoder(encoder)
            if served.leaving:
                raise Conflict(f"revision {name!r} is leaving", where=name)
            with self._revisions.lease(served):
                sealed = await asyncio.to_thread(_read_manifest, manifest)
                await asyncio.to_thread(self._replace, served.revision, loaded, sealed, engine)
                return loaded.engine.manifest

    def shapes(self) -> list[dict[str, Any]]:
        """What each encoder of each revision was asked for, beside what it is compiled for."""
        return [
            {
                "revision": served.revision.name,
                "encoder": name,
                "engine": encoder.engine.manifest.engine,
                "profiles": encoder.engine.manifest.spec.profiles,
                "recorded": encoder.engine.recorded(),
                "counts": encoder.engine.counts(),
            }
            for served in self._revisions.all()
            for name, encoder in served.revision.encoders.items()
        ]

    async def remove(self, name: str) -> None:
        """Drain and unload a revision. Raises NotFound; Conflict where it has traffic."""
        revision = await self._revisions.remove(name)
        await asyncio.to_thread(revision.close)

    async def route(self, traffic: Traffic) -> None:
        """Swap the traffic split. Raises NotFound where it names what is not loaded."""
        async with self._lock:
            self._revisions.set_traffic(traffic)


def _read_manifest(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_MANIFEST_BYTES:
            raise TooLarge(f"a manifest of {size} bytes is none", where=path.name)
        return path.read_bytes()
    except OSError as error:
        raise NotFound(
            f"the sealed manifest cannot be read: {error.strerror}", where=path.name
        ) from error
