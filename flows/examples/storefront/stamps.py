"""Pictures with written and spoken captions from Debian's `tuxpaint-stamps-default`.

A stamp is a PNG; beside it lie a text whose first line is the English caption, and for some a
recording of it (`_desc.ogg`). Read where they are installed; nothing of them is ours to keep.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("/usr/share/tuxpaint/stamps")
MAX_CAPTION_CHARACTERS = 100
MAX_PICTURE_BYTES = 1024 * 1024
_DERIVED = ("_mirror", "_flip")


@dataclass(frozen=True, slots=True)
class Stamp:
    """One picture. `recording` is a person reading the caption, in English, where there is one."""

    id: str
    picture: Path
    caption: str
    recording: Path | None

    @property
    def group(self) -> str:
        return self.id.split("-", 1)[0]


def find_stamps(limit: int, *, seed: int = 0, folder: Path = FOLDER) -> list[Stamp]:
    """At most `limit` stamps in order of their ids, chosen by a hash of seed and id.

    Letters, digits and signs are left out: their captions name them and do not describe.
    """
    found = [stamp for path in sorted(folder.rglob("*.png")) if (stamp := _read(path, folder))]
    found.sort(key=lambda stamp: hashlib.sha256(f"{seed}:{stamp.id}".encode()).digest())
    return sorted(found[:limit], key=lambda stamp: stamp.id)


def _read(path: Path, folder: Path) -> Stamp | None:
    inside = path.relative_to(folder)
    note = path.with_suffix(".txt")
    if path.stem.endswith(_DERIVED) or inside.parts[0] == "symbols" or not note.is_file():
        return None
    lines = note.read_text("utf-8", errors="replace").splitlines()
    caption = lines[0].strip() if lines else ""
    if not 2 <= len(caption) <= MAX_CAPTION_CHARACTERS:
        return None
    if path.stat().st_size > MAX_PICTURE_BYTES:
        return None
    recording = path.with_name(f"{path.stem}_desc.ogg")
    name = "-".join(inside.with_suffix("").parts).lower()
    return Stamp(name, path, caption, recording if recording.is_file() else None)
