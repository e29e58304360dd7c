"""Data set folders from committed manifests, their media made from packaged pictures and tones.

`media.json` beside a manifest says how: {"picture": name, "gain": factor, "keep_bytes": n} or
{"tone_hz": pitch, "seconds": length}.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.services.media_files import encode, picture, tone, wav


def build(scenario: Path, name: str, folder: Path) -> Path:
    """The data set that `<scenario>/<name>.jsonl` describes, as a folder ready to be ingested."""
    recipes = json.loads((scenario / "media.json").read_text(encoding="utf-8"))
    for place, recipe in recipes.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_make(recipe))
    shutil.copyfile(scenario / f"{name}.jsonl", folder / "manifest.jsonl")
    return folder


def _make(recipe: dict[str, Any]) -> bytes:
    if "picture" not in recipe:
        return wav(tone(recipe["seconds"], recipe["tone_hz"]))
    gain = recipe.get("gain", 1.0)
    image = picture(recipe["picture"]).point(lambda value: value * gain)
    return encode(image)[: recipe.get("keep_bytes")]
