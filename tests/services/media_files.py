"""Media files for the tests, made on the spot from packaged pictures and from arithmetic."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from PIL import Image
from skimage import data

TAGS = {"sensor": "camera", "channels": "RGB", "lighting": "day", "source": "studio"}


def picture(name: str) -> Image.Image:
    """One of scikit-image's packaged pictures: astronaut, camera, cat, coffee, coins, rocket ..."""
    return Image.fromarray(np.asarray(getattr(data, name)())).convert("RGB")


def encode(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format=form, **options)
    return stream.getvalue()


def tone(seconds: float = 1.0, hz: float = 440.0, rate_hz: int = 16_000) -> np.ndarray:
    time = np.arange(int(seconds * rate_hz)) / rate_hz
    return (0.3 * np.sin(2 * np.pi * hz * time)).astype(np.float32)


def wav(samples: np.ndarray, rate_hz: int = 16_000) -> bytes:
    stream = io.BytesIO()
    soundfile.write(stream, samples, rate_hz, format="WAV", subtype="PCM_16")
    return stream.getvalue()


def write_folder(folder: Path, rows: list[dict[str, Any]], files: dict[str, bytes]) -> Path:
    """A data set folder: rows get the usual tags where they bring none."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    lines = (json.dumps({"tags": TAGS, **row}, ensure_ascii=False) for row in rows)
    (folder / "manifest.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
