"""Requests as a service gets them: a caption, and a part of a real photograph.

Pictures are those of the reference service's embedded set (photographs inside scikit-image and
scikit-learn): random crops of half to all of each side, half of them mirrored. Words are those of
the captions, some left out, each by a hash of its letters. Seeded: the same packages give the same
requests.
"""

from __future__ import annotations

import csv
import re
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from flows.examples.incident.text import POSITIONS, VOCABULARY
from flows.examples.incident.vision import SIZE_PX
from flows.examples.storefront.data import TABLE
from flows.examples.storefront.packages import package_file

SEED = 927
LEFT_OUT_SHARE = 0.25
LEAST_SIDE_SHARE = 0.5

Arrays = dict[str, npt.NDArray[Any]]


def make_requests(count: int, seed: int = SEED) -> list[Arrays]:
    """`count` requests: ids int64 [1, words], pixels uint8 [1, 3, 224, 224].

    Raises:
        Unavailable: the packages of the reference extra are not installed.
    """
    generator = np.random.default_rng(seed)
    with TABLE.open(encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table))
    pictures = [_picture(row["package"], row["path"]) for row in rows]
    found: list[Arrays] = []
    for at in generator.integers(0, len(rows), count):
        found.append(
            {
                "ids": _ids(rows[at]["caption"], generator),
                "pixels": _crop(pictures[at], generator),
            }
        )
    return found


def _picture(package: str, path: str) -> Image.Image:
    with Image.open(package_file(package, *path.split("/"))) as picture:
        return picture.convert("RGB")


def _crop(picture: Image.Image, generator: np.random.Generator) -> npt.NDArray[np.uint8]:
    sides = [max(1, int(side * generator.uniform(LEAST_SIDE_SHARE, 1))) for side in picture.size]
    left, top = (
        int(generator.integers(0, whole - side + 1))
        for whole, side in zip(picture.size, sides, strict=True)
    )
    part = picture.crop((left, top, left + sides[0], top + sides[1])).resize((SIZE_PX, SIZE_PX))
    pixels = np.asarray(part, np.uint8).transpose(2, 0, 1)[None]
    return np.ascontiguousarray(pixels[..., ::-1] if generator.random() < 0.5 else pixels)


def _ids(caption: str, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    words = re.findall(r"\w+", caption.lower())
    kept = [word for word in words if generator.random() >= LEFT_OUT_SHARE] or words[:1]
    return np.array([[zlib.crc32(word.encode()) % VOCABULARY for word in kept[:POSITIONS]]])
