"""Text on a picture of a page: PP-OCRv6 through rapidocr, from the model files in its package.

Nothing is downloaded: every model is named by its path, and the recogniser's characters are in its
model. One thread. A page that lies on its side or upside down is found by the shape of its lines
and by the classifier of their direction, turned, and recognised again.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from rapidocr import RapidOCR
from rapidocr.main import RapidOCRError

from services.ingest.media.layout import Box, turn_back
from validators.contracts.errors import Unavailable

Pixels = npt.NDArray[np.uint8]

CONFIDENCE = 0.5
"""Lines that are recognised with less are counted, not given out."""

_MODELS = {
    "Det.model_path": "PP-OCRv6_det_small.onnx",
    "Cls.model_path": "ch_ppocr_mobile_v2.0_cls_mobile.onnx",
    "Rec.model_path": "PP-OCRv6_rec_small.onnx",
}
_SETTINGS = {
    "Global.log_level": "critical",
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
    # Lines are looked for on a smaller picture and read from the whole one: measured at 1.6 times
    # the speed with the same characters, down to letters of 8 points.
    "Det.limit_type": "max",
    "Det.limit_side_len": 960,
    # Lines one by one are not padded to the longest of six: measured at 1.4 times the speed, and
    # 200 MB less at the peak.
    "Rec.rec_batch_num": 1,
}
_SURE = 0.9  # of the classifier, before a page is turned by it
_MAJORITY = 0.6
_NOT_WORSE = 0.9  # single lines are turned in any case, so that both readings may be good


@dataclass(frozen=True, slots=True)
class Line:
    """One line as recognised; its box on the page as it was given, not as it was turned."""

    box: Box
    text: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Recognised:
    """`quarter_turns` counterclockwise make the page upright; `unsure` lines were left out.

    `lines` are in no order; `upright` are their boxes on the upright page.
    """

    lines: tuple[Line, ...]
    upright: tuple[Box, ...]
    quarter_turns: int
    unsure: int


def recognise(pixels: Pixels) -> Recognised:
    """The lines of a page, BGR uint8 [H, W, 3].

    Raises:
        Unavailable: the recogniser's models are not installed.
    """
    engine = _engine()
    first = _read(engine, pixels)
    turns = _turns(first)
    if turns:
        turned = _read(engine, np.ascontiguousarray(np.rot90(pixels, turns)))
        if _worth(turned) >= _NOT_WORSE * _worth(first):
            return _result(turned, turns)
    return _result(first, 0)


@dataclass(frozen=True, slots=True)
class _Reading:
    """Lines with their boxes on the page as it was read, and what tells how it lies."""

    boxes: list[Box]
    texts: Sequence[str]
    scores: Sequence[float]
    tall: Sequence[bool]
    flipped: Sequence[tuple[str, float]]


def _read(engine: RapidOCR, pixels: Pixels) -> _Reading:
    picture, record = engine.preprocess_img(pixels)
    try:
        crops, found = engine.detect_and_crop(picture, record)
        upright, directions = engine.cls_and_rotate(crops)
        lines = engine.recognize_txt(upright)
    except RapidOCRError:  # its word for a page without text
        return _Reading([], (), (), (), ())
    height, width = picture.shape[:2]
    pad = record.get("padding_1", {"top": 0, "left": 0})
    corners = np.asarray(found.boxes, dtype=np.float64) - (pad["left"], pad["top"])
    boxes = [_box(item / (width, height)) for item in corners]
    tall = [_tall(item) for item in corners]
    return _Reading(boxes, lines.txts or (), lines.scores, tall, directions.cls_res or ())


def _turns(reading: _Reading) -> int:
    """Quarter turns counterclockwise that would make the page upright.

    Lines that stand are turned counterclockwise once before their direction is classified.
    """
    if not reading.boxes:
        return 0
    sideways = float(np.mean(reading.tall)) > _MAJORITY
    judged = [
        label == "180"
        for (label, score), tall in zip(reading.flipped, reading.tall, strict=True)
        if score >= _SURE and bool(tall) == sideways
    ]
    flipped = bool(judged) and float(np.mean(judged)) > _MAJORITY
    return (1 if sideways else 0) + (2 if flipped else 0)


def _worth(reading: _Reading) -> float:
    """Characters, weighted with how sure they are."""
    return sum(len(text) * score for text, score in zip(reading.texts, reading.scores, strict=True))


def _result(reading: _Reading, turns: int) -> Recognised:
    kept = [
        at
        for at, (text, score) in enumerate(zip(reading.texts, reading.scores, strict=True))
        if text.strip() and score >= CONFIDENCE
    ]
    lines = tuple(
        Line(turn_back(reading.boxes[at], turns), reading.texts[at], float(reading.scores[at]))
        for at in kept
    )
    unsure = sum(bool(text.strip()) for text in reading.texts) - len(kept)
    return Recognised(lines, tuple(reading.boxes[at] for at in kept), turns, unsure)


def _box(corners: npt.NDArray[np.float64]) -> Box:
    inside = np.clip(corners, 0.0, 1.0)
    (left, top), (right, bottom) = inside.min(axis=0), inside.max(axis=0)
    return Box(float(left), float(top), float(right), float(bottom))


def _tall(corners: npt.NDArray[np.float64]) -> bool:
    """Whether rapidocr turns this line before it reads it (its own rule)."""
    width = max(np.linalg.norm(corners[0] - corners[1]), np.linalg.norm(corners[2] - corners[3]))
    height = max(np.linalg.norm(corners[0] - corners[3]), np.linalg.norm(corners[1] - corners[2]))
    return bool(height >= 1.5 * width)


@functools.lru_cache(maxsize=1)
def _engine() -> RapidOCR:
    folder = model_folder()
    paths = {key: folder / name for key, name in _MODELS.items()}
    missing = [path.name for path in paths.values() if not path.is_file()]
    if missing:
        raise Unavailable(
            f"models of the text recogniser are not installed: {', '.join(missing)}",
            where="rapidocr", remedy="Install rapidocr from its wheel, which holds them.",
        )  # fmt: skip
    cv2.setNumThreads(1)
    settings: dict[str, Any] = {**_SETTINGS, **{key: str(path) for key, path in paths.items()}}
    return RapidOCR(params=settings)


def model_folder() -> Path:
    """Where the wheel keeps its models."""
    spec = importlib.util.find_spec("rapidocr")
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable("rapidocr is not installed", remedy="Install the project's dependencies.")
    return Path(spec.submodule_search_locations[0]) / "models"
