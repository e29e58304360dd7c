"""What may go: objects and engines that nothing refers to, and raw media past their use.

An object is kept while a reference, or a kept JSON document, names its digest. Documents are
recognised by their first byte; blobs are never read whole.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from flows.locks import exclusive, shared
from flows.workspace import Workspace
from infra.objects.folder import FolderStore
from validators.contracts.digest import Digest
from validators.contracts.errors import ModalgateError, NotFound
from validators.contracts.ports import ObjectStore

_NAMES = re.compile(rb"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Swept:
    kept: int
    removed: tuple[Digest, ...]


def reachable(store: ObjectStore, without: Collection[str] = ()) -> frozenset[Digest]:
    """Every object that a reference leads to, directly or through documents.

    `without` are references to think away.
    """
    waiting = [
        digest
        for name in store.references()
        if name not in without and (digest := store.reference(name)) is not None
    ]
    seen: set[Digest] = set()
    while waiting:
        digest = waiting.pop()
        if digest not in seen:
            seen.add(digest)
            waiting += _named_in(store, digest)
    return frozenset(seen)


def sweep(store: ObjectStore, *, dry_run: bool = False, without: Collection[str] = ()) -> Swept:
    """Remove what is not reachable. Call it only while no release writes to this store."""
    keep = reachable(store, without)
    orphans = tuple(digest for digest in store.objects() if digest not in keep)
    if not dry_run:
        for digest in orphans:
            store.delete(digest)
    return Swept(len(keep), orphans)


@contextmanager
def tidied(workspace: Workspace) -> Iterator[None]:
    """Hold off sweeps while a release writes; then remove what it, or a killed one, left behind.

    The last of several releases sweeps. A store that other machines write to is left alone: no lock
    of this machine tells what they are about to refer to.
    """
    writing = workspace.home.lock("store")
    try:
        with shared(writing):
            yield
    finally:
        if isinstance(workspace.store, FolderStore):
            # Another release writes, or the store is in trouble and the release says so itself.
            with suppress(ModalgateError), exclusive(writing, "a release"):
                sweep(workspace.store)


def purge(quarantine: ObjectStore) -> int:
    """Remove every raw object; the number removed. A later release reads the source again."""
    names, digests = list(quarantine.references()), list(quarantine.objects())
    for name in names:
        quarantine.delete_reference(name)
    for digest in digests:
        quarantine.delete(digest)
    return len(digests)


def _named_in(store: ObjectStore, digest: Digest) -> list[Digest]:
    try:
        with store.open(digest) as stream:
            first = stream.read(1)
            if first not in (b"{", b"["):
                return []
            return [Digest(name.decode()) for name in _NAMES.findall(first + stream.read())]
    except NotFound:
        return []
