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


@dataclass(frozen=True, slots=True)
class PipelinePlace:
    file: str  # the user's file


def remember_pipeline(workspace: Workspace, bundle: Digest, file: Path) -> None:
    """Write down the file that this release was made from: an alarm may release it again."""
    document = canonical_json(PipelinePlace(str(file.resolve())))
    write_atomically(_pipeline_path(workspace, bundle), document)


def pipeline_file_of(workspace: Workspace, bundle: Digest) -> Path | None:
    """That file; None where this machine did not make the release."""
    path = _pipeline_path(workspace, bundle)
    try:
        return Path(load(PipelinePlace, path.read_bytes(), where=str(path)).file)
    except FileNotFoundError:
        return None


def _pipeline_path(workspace: Workspace, bundle: Digest) -> Path:
    return workspace.home.folder("sources") / f"{hex_of(bundle)}.pipeline.json"
