"""What is kept of every background build, for people and for retention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from validators.contracts.builds import ShapeRequest
from validators.contracts.digest import Digest, canonical_json, hex_of
from validators.contracts.documents import load
from validators.contracts.errors import NotFound, Refused
from validators.contracts.ports import ObjectStore
from validators.contracts.verdict import Verdict

PREFIX = "builds/"


@dataclass(frozen=True, slots=True)
class BackgroundBuild:
    """One build behind `builds/<service>/<key of the request>`.

    `key` is the engine's; `engine` and `manifest` are its bytes and its sealed manifest, where the
    verdict let it pass.
    """

    request: ShapeRequest
    key: Digest
    verdict: Verdict
    engine: Digest | None
    manifest: Digest | None
    built_ms: int


def reference_of(request: ShapeRequest) -> str:
    return f"{PREFIX}{request.service}/{hex_of(request.key)}"


def keep_build(store: ObjectStore, build: BackgroundBuild) -> None:
    """The record in the store; a later build of the same request replaces it."""
    name, digest = reference_of(build.request), store.put(canonical_json(build))
    seen = store.reference(name)
    if seen != digest:
        store.set_reference(name, digest, expected=seen)


def builds_of(store: ObjectStore, service: str = "") -> Iterator[tuple[str, BackgroundBuild]]:
    """The records by reference; one whose document is gone or damaged is left out."""
    for name in list(store.references(f"{PREFIX}{service}/" if service else PREFIX)):
        digest = store.reference(name)
        try:
            if digest is not None:
                yield name, load(BackgroundBuild, store.get(digest), where=name)
        except (NotFound, Refused):
            continue
