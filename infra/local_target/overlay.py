"""Engines that replace those of a bundle on this machine: built later, for shapes it did not cover.

The bundle stays as it was approved; beside it lies, for each of its encoders, at most one other
engine of that encoder, which its reader believes no more than its own signature and digest hold.

    <folder>/<revision>/<encoder>.json      the Overlay; replaced whole, and last
    <folder>/<revision>/objects/<hex>       the sealed manifests and engines that overlays name
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from infra.files import (
    disk_faults,
    locked,
    make_private_folder,
    stage,
    write_atomically,
)
from infra.objects.content import copy, source_file
from validators.contracts.digest import Digest, canonical_json, digest_bytes, hex_of
from validators.contracts.documents import load
from validators.contracts.errors import BadInput, Refused

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_LOCK = "lock"
_REMEDY = "Make the deployment's folder usable and try again."


@dataclass(frozen=True, slots=True)
class Overlay:
    """One encoder's replacement: the digests of the sealed manifest and of the engine's bytes."""

    encoder: str
    manifest: Digest
    engine: Digest


@dataclass(frozen=True, slots=True)
class PlacedEngine:
    """An overlay with its files."""

    overlay: Overlay
    manifest: Path
    engine: Path


@contextlib.contextmanager
def placing(
    folder: Path, revision: str, encoder: str, manifest: bytes, engine: Path
) -> Iterator[PlacedEngine]:
    """Put a sealed manifest and an engine's file in place of what is there; whole, or not at all.

    Where the block raises, what was there before is in place again.

    Raises:
        BadInput: a name that is none.  NotFound: no such engine file.
        Unavailable: the disk is full; what was there stays.
    """
    place = _place(folder, revision, encoder)
    with disk_faults("the deployment's folder", str(place), _REMEDY):
        make_private_folder(place / "objects")
        with locked(place / _LOCK):
            before = _read(place / f"{encoder}.json")
            try:
                overlay = Overlay(encoder, digest_bytes(manifest), _keep(place, engine))
                write_atomically(place / "objects" / hex_of(overlay.manifest), manifest)
                _name(place, encoder, overlay)
                yield _placed(place, overlay)
            except BaseException:
                _name(place, encoder, before)
                raise
            finally:
                _remove_unnamed(place)


def find_engine(folder: Path, revision: str, encoder: str) -> PlacedEngine | None:
    """What is in place for an encoder, if anything is. Its bytes are not checked here."""
    place = _place(folder, revision, encoder)
    overlay = _read(place / f"{encoder}.json")
    return None if overlay is None or overlay.encoder != encoder else _placed(place, overlay)


def placed_engines(folder: Path, revision: str) -> tuple[PlacedEngine, ...]:
    """All that is in place for a revision, by encoder."""
    names = sorted(path.stem for path in _place(folder, revision).glob("*.json"))
    found = (find_engine(folder, revision, name) for name in names if _NAME.fullmatch(name))
    return tuple(item for item in found if item is not None)


def keep_only(folder: Path, revisions: Collection[str], older_than_ns: int) -> None:
    """Remove the overlays of all other revisions that were placed before a wall time."""
    with contextlib.suppress(FileNotFoundError):
        for place in folder.iterdir():
            spare = place.name not in revisions and _NAME.fullmatch(place.name)
            if spare and place.stat().st_mtime_ns <= older_than_ns:
                shutil.rmtree(place, ignore_errors=True)


def _keep(place: Path, engine: Path) -> Digest:
    """The engine's bytes under their digest: what was copied is what is named."""
    with source_file(engine) as source, stage(place / "objects") as staged:
        digest = copy(source, staged.write)
        staged.publish(place / "objects" / hex_of(digest))
    return digest


def _name(place: Path, encoder: str, overlay: Overlay | None) -> None:
    path = place / f"{encoder}.json"
    if overlay is None:
        path.unlink(missing_ok=True)
    elif _read(path) != overlay:
        write_atomically(path, canonical_json(overlay))


def _remove_unnamed(place: Path) -> None:
    """Drop what no overlay names; a gateway that serves it has read it already."""
    overlays = [overlay for path in place.glob("*.json") if (overlay := _read(path)) is not None]
    named = {hex_of(digest) for item in overlays for digest in (item.manifest, item.engine)}
    for path in (place / "objects").iterdir():
        if path.name not in named:
            path.unlink(missing_ok=True)


def _read(path: Path) -> Overlay | None:
    """None where there is none, or it does not hold: then the bundle's own engine serves."""
    try:
        return load(Overlay, path.read_bytes(), where=str(path))
    except (FileNotFoundError, Refused):
        return None


def _placed(place: Path, overlay: Overlay) -> PlacedEngine:
    objects = place / "objects"
    return PlacedEngine(
        overlay, objects / hex_of(overlay.manifest), objects / hex_of(overlay.engine)
    )


def _place(folder: Path, revision: str, encoder: str = "any") -> Path:
    for name in (revision, encoder):
        if not _NAME.fullmatch(name):
            raise BadInput(
                f"{name[:80]!r} cannot name a file",
                where=str(folder),
                remedy="Use letters, digits, '.', '_' and '-'.",
            )
    return folder / revision
