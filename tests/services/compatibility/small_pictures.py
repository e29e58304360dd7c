"""Small coloured pictures and a small network, to be fed rightly and wrongly."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from services.compatibility.compare import EncoderVersion
from tests.services.compatibility.engines import CONTRACT, FunctionEngine
from validators.contracts.encoder import PreprocessSpec
from validators.contracts.ports import Tensors
from validators.contracts.tensors import DType, Meaning, TensorSpec

Array = npt.NDArray[Any]
SIDE = 16

PICTURES = replace(
    CONTRACT,
    inputs=(TensorSpec("pixels", DType.FP32, ("batch", 3, SIDE, SIDE), Meaning.PIXELS),),
    outputs=(
        TensorSpec("features", DType.FP32, ("batch", 24), Meaning.GLOBAL_EMBEDDING, space="one"),
        TensorSpec("logits", DType.FP32, ("batch", 6), Meaning.LOGITS),
    ),
    preprocess=PreprocessSpec("image", (("mean", 127), ("scale", 128), ("size", SIDE))),
)


def pictures(count: int, seed: int = 0) -> list[Array]:
    """[1, 3, 16, 16] each: soft coloured blots, standardised as the contract says."""
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    made = []
    for _ in range(count):
        planes = np.zeros((3, SIDE, SIDE)) + random.uniform(20, 235, (3, 1, 1))
        for _ in range(4):
            y, x, size = random.uniform((0, 0, 0.1), (1, 1, 0.4)).tolist()
            blot = np.exp(-((rows - y) ** 2 + (columns - x) ** 2) / size**2)
            planes += random.uniform(-150, 150, (3, 1, 1)) * blot
        pixels = (np.clip(np.round(planes), 0, 255) - 127) / 128
        made.append(pixels[None].astype(np.float32))
    return made


def as_png(pixels: Array) -> bytes:
    """The picture as a file that the contract's preprocessing reads back."""
    planes = np.round(pixels[0] * 128 + 127).astype(np.uint8).transpose(1, 2, 0)
    out = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(planes)).save(out, "PNG")
    return out.getvalue()


def network(seed: int, noise: float = 0.0, noise_seed: int = 0) -> Callable[[Array], Array]:
    """A random network over means of fields, with biases so that scale and offset matter."""
    random = np.random.default_rng(seed)
    weights = [random.standard_normal(shape) for shape in ((48, 64), (64,), (64, 24))]
    other = np.random.default_rng([seed, noise_seed])
    first, bias, last = (item + noise * other.standard_normal(item.shape) for item in weights)

    def run(pixels: Array) -> Array:
        fields = pixels.reshape(len(pixels), 3, 4, 4, 4, 4).mean(axis=(3, 5))
        return np.asarray(np.maximum(fields.reshape(len(pixels), 48) @ first + bias, 0) @ last)

    return run


def version(
    number: str, run: Callable[[Array], Array], wants: Callable[[Array], Array] = lambda x: x
) -> EncoderVersion:
    """`wants` undoes what the weights expect beyond the contract."""

    def answer(feeds: Tensors) -> Mapping[str, Array]:
        features = run(np.asarray(wants(feeds["pixels"]), np.float64)).astype(np.float32)
        return {"features": features, "logits": features[:, :6]}

    return EncoderVersion(replace(PICTURES, version=number), FunctionEngine(answer))
