"""Evidence of a release as files with a manifest: nothing can be added, lost or changed unseen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from validators.contracts.digest import canonical_json, digest_bytes
from validators.contracts.documents import load
from validators.contracts.errors import BadInput, Refused, TooLarge
from validators.contracts.verdict import Evidence

FOLDER = "evidence"
MANIFEST = "evidence.json"
MAX_FILES = 1000
MAX_TOTAL_BYTES = 256 << 20

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}(?:/[A-Za-z0-9_][A-Za-z0-9._-]{0,99}){0,4}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """Every file of the evidence, by name and digest, sorted by name."""

    files: tuple[Evidence, ...]

    def document(self) -> bytes:
        return canonical_json(self)


def manifest_of(evidence: Mapping[str, bytes]) -> Manifest:
    """The manifest of these files.

    Raises:
        BadInput: a name that is no plain relative path, or is a file and a folder at once.
        TooLarge: over MAX_FILES or MAX_TOTAL_BYTES.
    """
    size_bytes = sum(map(len, evidence.values()))
    if len(evidence) > MAX_FILES or size_bytes > MAX_TOTAL_BYTES:
        raise TooLarge(
            f"the evidence has {len(evidence)} files and {size_bytes} bytes",
            where=f"at most {MAX_FILES} files and {MAX_TOTAL_BYTES} bytes",
            remedy="Store large evidence as objects and register a document that names them.",
        )
    for name in evidence:
        _require_name(name, evidence)
    return Manifest(
        tuple(Evidence(name, digest_bytes(data)) for name, data in sorted(evidence.items()))
    )


def write_files(evidence: Mapping[str, bytes], root: Path) -> Manifest:
    """Lay the evidence and its manifest out below a folder."""
    manifest = manifest_of(evidence)
    for name, data in evidence.items():
        path = root / FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (root / MANIFEST).write_bytes(manifest.document())
    return manifest


def read_files(root: Path, expected: str, where: str) -> dict[str, bytes]:
    """The evidence below a folder, checked against the manifest that has the expected digest.

    Raises:
        Refused: the manifest or a file is missing or changed.
    """
    document = _read(root / MANIFEST, MANIFEST, where)
    if digest_bytes(document) != expected:
        raise _changed(MANIFEST, where)
    files: dict[str, bytes] = {}
    for item in load(Manifest, document, where=where).files:
        _require_name(item.name, ())
        files[item.name] = _read(root / FOLDER / item.name, item.name, where)
        if digest_bytes(files[item.name]) != item.digest:
            raise _changed(item.name, where)
    return files


def _require_name(name: str, others: Iterable[str]) -> None:
    folders = {name.rsplit("/", depth)[0] for depth in range(1, name.count("/") + 1)}
    if not _NAME.fullmatch(name) or folders.intersection(others):
        raise BadInput(
            f"{name[:80]!r} cannot name a piece of evidence",
            remedy="Use letters, digits and any of _ . - in at most five path segments.",
        )


def _read(path: Path, name: str, where: str) -> bytes:
    try:
        if path.stat().st_size <= MAX_TOTAL_BYTES:
            return path.read_bytes()
    except OSError as error:
        raise _changed(name, where) from error
    raise _changed(name, where)


def _changed(name: str, where: str) -> Refused:
    return Refused(
        f"the evidence file {name} is missing or was changed since it was registered",
        where=where,
        remedy="Restore the registry's artifacts from their backup, or release again.",
    )
