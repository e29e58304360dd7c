"""Pictures → NCHW float32, the way the encoder saw them in training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from services.preprocess.media import decode_image
from services.preprocess.options import read_options
from validators.contracts.digest import Digest
from validators.contracts.encoder import PreprocessSpec
from validators.contracts.errors import BadInput

MAX_SIZE_PX = 2048
_RESAMPLE = {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}


@dataclass(frozen=True, slots=True)
class ImagePreprocessor:
    """JPEG, PNG or WebP bytes → `tensor` [1, 3, size, size] = (rgb - mean) / scale.

    `fit`: letterbox keeps the whole picture on a white ground, crop its centre, stretch neither
    margin nor aspect.
    """

    tensor: str
    size_px: int
    mean: npt.NDArray[np.float32]  # [3, 1, 1], in 0..255
    scale: npt.NDArray[np.float32]  # [3, 1, 1]
    fit: str
    resample: Image.Resampling

    def __call__(self, raw: object) -> dict[str, npt.NDArray[Any]]:
        if not isinstance(raw, bytes):
            raise BadInput(
                f"an image preprocessor was given {type(raw).__name__}",
                where=self.tensor,
                remedy="Give the bytes of a JPEG, PNG or WebP file.",
            )
        picture = fit_picture(decode_image(raw), self.size_px, self.fit, self.resample)
        planes = np.asarray(picture, dtype=np.float32).transpose(2, 0, 1)
        return {self.tensor: np.ascontiguousarray((planes - self.mean) / self.scale)[None]}


def make_image(spec: PreprocessSpec, read_asset: Callable[[Digest], bytes]) -> ImagePreprocessor:
    """Options: tensor, size, mean, scale, fit (letterbox | crop | stretch), resample."""
    del read_asset  # pictures need no file of their own
    options = read_options(spec, ("tensor", "size", "mean", "scale", "fit", "resample"))
    scale = _per_channel(options.numbers("scale", 255.0), "scale")
    if (scale <= 0).any():
        raise BadInput("option scale of image preprocessing is not above 0", where="scale")
    return ImagePreprocessor(
        tensor=options.text("tensor", "pixels"),
        size_px=options.integer("size", 224, 8, MAX_SIZE_PX),
        mean=_per_channel(options.numbers("mean", 0.0), "mean"),
        scale=scale,
        fit=options.text("fit", "letterbox", ("letterbox", "crop", "stretch")),
        resample=_RESAMPLE[options.text("resample", "bicubic", tuple(_RESAMPLE))],
    )


def fit_picture(
    picture: Image.Image, size_px: int, fit: str, resample: Image.Resampling
) -> Image.Image:
    """The RGB picture as a square of `size_px`."""
    if fit == "stretch":
        return picture.resize((size_px, size_px), resample)
    wide, high = picture.size
    longest = fit == "letterbox"
    ratio = size_px / (max(wide, high) if longest else min(wide, high))
    box = max(1, round(wide * ratio)), max(1, round(high * ratio))
    if longest:
        ground = Image.new("RGB", (size_px, size_px), (255, 255, 255))
        ground.paste(
            picture.resize(box, resample), ((size_px - box[0]) // 2, (size_px - box[1]) // 2)
        )
        return ground
    # Cut before scaling: a very long picture never becomes a very large one.
    side = min(wide, high)
    left, top = (wide - side) // 2, (high - side) // 2
    square = (left, top, left + side, top + side)
    return picture.resize((size_px, size_px), resample, box=square)


def _per_channel(values: tuple[float, ...], name: str) -> npt.NDArray[np.float32]:
    if len(values) not in (1, 3) or not np.isfinite(values).all():
        raise BadInput(
            f"option {name} of image preprocessing has {len(values)} numbers",
            where=f"preprocess.options.{name}",
            remedy="Give one finite number, or three for red, green and blue.",
        )
    return np.broadcast_to(np.array(values, np.float32), (3,)).reshape(3, 1, 1).copy()
