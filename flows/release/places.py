"""Where the sources of a release lie on this machine: a background build compares with them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from flows.workspace import Workspace
from infra.files import write_atomically
from validators.contracts.digest import Digest, canonical_json, hex_of
from validators.contracts.documents import load


@dataclass(frozen=True, slots=True)
class SourcePlace:
    folder: str  # of the pipeline file


def remember_place(workspace: Workspace, bundle: Digest, base: Path) -> None:
    """Write down the folder that relative sources of this release start from."""
    write_atomically(_path(workspace, bundle), canonical_json(SourcePlace(str(base.resolve()))))


def place_of(workspace: Workspace, bundle: Digest) -> Path:
    """That folder; the state folder where this machine did not make the release."""
    path = _path(workspace, bundle)
    try:
        return Path(load(SourcePlace, path.read_bytes(), where=str(path)).folder)
    except FileNotFoundError:
        return workspace.home.folder()


def _path(workspace: Workspace, bundle: Digest) -> Path:
    return workspace.home.folder("sources") / f"{hex_of(bundle)}.json"
