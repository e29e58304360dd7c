"""The versions that the benchmark `compat` judges: real networks, and what can go wrong."""

from __future__ import annotations

import copy
import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
import torch
from PIL import Image
from torch import nn

from flows.examples.storefront.data import TABLE
from flows.examples.storefront.packages import package_file
from services.compatibility.compare import EncoderVersion
from services.engines.export.torch_source import export_module
from tests.flows.examples.storefront.models import pipeline
from tests.services.compatibility.engines import CONTRACT, FunctionEngine
from validators.contracts.encoder import PreprocessSpec
from validators.contracts.pipeline import Pipeline
from validators.contracts.ports import Tensors
from validators.contracts.tensors import DType, Meaning, TensorSpec

Array = npt.NDArray[Any]

CROPS = 3
"""Crops of each photograph: 72 pictures."""

SEED = 11


def version_of(
    module: nn.Module, size: int, expects: Callable[[Array], Array] = lambda pixels: pixels
) -> EncoderVersion:
    def answer(feeds: Tensors) -> Mapping[str, Array]:
        pixels = np.ascontiguousarray(expects(feeds["pixels"]), np.float32)
        with torch.inference_mode():
            features, logits = module(torch.from_numpy(pixels))
        return {"features": features.numpy(), "logits": logits.numpy()}

    return wrapped(answer, size)


def wrapped(answer: Callable[[Tensors], Mapping[str, Array]], size: int) -> EncoderVersion:
    contract = replace(
        CONTRACT,
        inputs=(TensorSpec("pixels", DType.FP32, ("batch", 3, size, size), Meaning.PIXELS),),
        outputs=(
            TensorSpec("features", DType.FP32, ("batch", 1280), Meaning.GLOBAL_EMBEDDING),
            TensorSpec("logits", DType.FP32, ("batch", 1000), Meaning.LOGITS),
        ),
        preprocess=preprocessing(size),
    )
    return EncoderVersion(contract, FunctionEngine(answer))


def looked_up(vectors: Array) -> EncoderVersion:
    """A version whose answers are known, row by row."""
    embedding = TensorSpec("features", DType.FP32, ("batch", "width"), Meaning.GLOBAL_EMBEDDING)
    contract = replace(CONTRACT, inputs=(), outputs=(embedding,))

    def answer(feeds: Tensors) -> Mapping[str, Array]:
        return {"features": vectors[int(feeds["row"][0, 0])][None]}

    return EncoderVersion(contract, FunctionEngine(answer))


def exported(module: nn.Module) -> EncoderVersion:
    entry = pipeline().encoder("image")
    model = export_module(module, entry.contract, entry.profiles)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )

    def answer(feeds: Tensors) -> Mapping[str, Array]:
        values = session.run(["features", "logits"], {"pixels": feeds["pixels"]})
        return dict(zip(("features", "logits"), values, strict=True))

    return wrapped(answer, 224)


def noisy(module: nn.Module, share: float = 1e-3) -> nn.Module:
    tuned = copy.deepcopy(module)
    generator = torch.Generator().manual_seed(SEED)
    for parameter in tuned.parameters():
        spread = float(parameter.std()) if parameter.numel() > 1 else 0.0
        parameter.add_(torch.randn(parameter.shape, generator=generator) * share * spread)
    return tuned


def collapsed(module: nn.Module) -> nn.Module:
    """The last convolution's weights lost: only its bias speaks."""
    broken = copy.deepcopy(module)
    broken.get_parameter("head.convolution.weight").zero_()
    return broken


def preprocessing(size: int) -> PreprocessSpec:
    options = (("mean", 127), ("scale", 128), ("size", size), ("tensor", "pixels"))
    return PreprocessSpec("image", options)


def read_pictures() -> list[Image.Image]:
    random = np.random.default_rng(SEED)
    found = []
    with TABLE.open(encoding="utf-8", newline="") as table:
        for row in csv.DictReader(table):
            with Image.open(package_file(row["package"], *row["path"].split("/"))) as opened:
                picture = opened.convert("RGB")
            for _ in range(CROPS):
                sides = [int(side * random.uniform(0.5, 0.9)) for side in picture.size]
                left, top = (int(random.integers(0, whole - side + 1))
                             for whole, side in zip(picture.size, sides, strict=True))  # fmt: skip
                found.append(picture.crop((left, top, left + sides[0], top + sides[1])))
    return found


def pixels_of(pictures: Sequence[Image.Image], size: int) -> list[Array]:
    squares = (np.asarray(item.resize((size, size)), np.float32) for item in pictures)
    return [((item - 127) / 128).transpose(2, 0, 1)[None].copy() for item in squares]


def read_captions() -> list[str]:
    with TABLE.open(encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table))
    return list(dict.fromkeys(row[name] for name in ("caption", "request") for row in rows))


def with_int8_text() -> Pipeline:
    chosen = pipeline()
    return replace(
        chosen,
        encoders=tuple(
            replace(item, source=replace(item.source, location="x:minilm_text_int8"))
            if item.name == "text"
            else item
            for item in chosen.encoders
        ),
    )
