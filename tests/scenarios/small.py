"""A whole service in a folder, small enough to be released in seconds, edited as a user would.

Forty coloured shapes with captions, a picture encoder (pooled pixels through random features) and a
text encoder (the mean of word vectors), both made here as ONNX files. Colour and shape can be read
off the pixels, so a ridge map from pictures to captions beats chance by far.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml
from onnx import TensorProto, helper, numpy_helper
from PIL import Image, ImageDraw
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from tests.services.media_files import encode, write_folder

SERVICE = "shapes"
SIZE_PX = 48
GRID = 4  # the picture encoder sees 4 x 4 mean colours
FEATURES, WIDTH = 24, 24
COLOURS: Mapping[str, tuple[int, int, int]] = {
    "red": (215, 40, 40), "green": (40, 180, 60), "blue": (40, 70, 210), "yellow": (225, 210, 50),
    "pink": (240, 150, 190), "black": (30, 30, 30), "grey": (130, 130, 130),
    "orange": (240, 140, 30),
}  # fmt: skip
SHAPES = ("square", "circle", "triangle", "stripe", "cross")
WORDS = ("[UNK]", "[CLS]", "[SEP]", "a", "on", "paper", *COLOURS, *SHAPES)
TAGS = {"sensor": "camera", "channels": "RGB", "lighting": "day", "source": "studio"}
HELD_OUT_EVERY = 4

Row = dict[str, Any]


class Project:
    """A pipeline file with its models and data. Every edit is written at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pipeline = folder / "pipeline.yaml"
        self.rows: list[Row] = []
        (folder / "models").mkdir(parents=True)
        self.write_image_encoder()
        save(text_encoder(), folder / "models" / "text.onnx")
        tokenizer().save(str(folder / "models" / "tokenizer.json"))
        self.draw(picture)
        self.document: dict[str, Any] = pipeline_document()
        self.edit(lambda document: None)

    def edit(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the pipeline file."""
        change(self.document)
        self.pipeline.write_text(yaml.safe_dump(self.document, sort_keys=False), encoding="utf-8")

    def write_image_encoder(self, seed: int = 1, **options: Any) -> None:
        save(image_encoder(seed, **options), self.folder / "models" / "image.onnx")

    def draw(self, picture_of: Callable[[str, str], Image.Image]) -> None:
        """The data set anew, one picture for each colour and shape."""
        pairs = [(colour, shape) for shape in SHAPES for colour in COLOURS]
        self.rows, files = [], {}
        for number, (colour, shape) in enumerate(pairs):
            name = f"media/{colour}-{shape}.png"
            files[name] = encode(picture_of(shape, colour))
            split = "held-out" if number % HELD_OUT_EVERY == shape_number(shape) % 4 else "train"
            self.rows.append(
                {
                    "id": f"{colour}-{shape}",
                    "image": name,
                    "text": f"a {colour} {shape} on paper",
                    "tags": {**TAGS, "split": split},
                }
            )
        write_folder(self.folder / "data", self.rows, files)

    def collect(self, change: Callable[[list[Row]], object], **files: bytes) -> None:
        """Change the data set's rows, and add files to `media/`."""
        self.rows = copy.deepcopy(self.rows)
        change(self.rows)
        named = {f"media/{name.replace('__', '.')}": data for name, data in files.items()}
        write_folder(self.folder / "data", self.rows, named)


def pipeline_document() -> dict[str, Any]:
    """The pipeline file as a value."""
    return {
        "service": SERVICE,
        "slo": {
            "class": "offline", "p99_ms": 2000, "soft_limit_ms": 1500, "peak_memory_mb": 2048,
            "consistency": 0.2, "error_rate": 0.01,
        },
        "modalities": {"image": {}, "text": {"main": True}},
        "data": {"folder": "data"},
        "encoders": {
            "image": {
                "version": "1.0.0",
                "modality": "image",
                "source": {"onnx": "models/image.onnx"},
                "licence": "Apache-2.0",
                "inputs": [
                    tensor("pixels", "FP32", ["batch", 3, 32, 32], "pixels", range=[0, 1.01])
                ],
                "outputs": [
                    tensor("features", "FP32", ["batch", FEATURES], "global_embedding",
                           space="shapes-features"),
                    tensor("logits", "FP32", ["batch", len(COLOURS)], "logits"),
                ],
                "preprocess": {
                    "kind": "image",
                    "options": {"tensor": "pixels", "size": 32, "mean": 0, "scale": 255,
                                "fit": "stretch", "resample": "bilinear"},
                },
                "profiles": [profile(pixels=([1, 3, 32, 32], [1, 3, 32, 32], [4, 3, 32, 32]))],
            },
            "text": {
                "version": "1.0.0",
                "modality": "text",
                "source": {"onnx": "models/text.onnx"},
                "licence": "Apache-2.0",
                "inputs": [
                    tensor("ids", "INT64", ["batch", "tokens"], "token_ids",
                           range=[0, len(WORDS) - 1]),
                    tensor("mask", "INT64", ["batch", "tokens"], "attention_mask", range=[0, 1]),
                ],
                "outputs": [
                    tensor("meaning_vector", "FP32", ["batch", WIDTH], "global_embedding",
                           space="words"),
                ],
                "preprocess": {
                    "kind": "wordpiece",
                    "options": {"max_tokens": 16, "ids": "ids", "mask": "mask"},
                    "assets": {"tokenizer": "models/tokenizer.json"},
                },
                "profiles": [
                    profile(ids=([1, 2], [1, 8], [4, 16]), mask=([1, 2], [1, 8], [4, 16]))
                ],
            },
        },
        "branches": {
            "image": {
                "encoder": "image",
                "adapter": {"kind": "ridge", "output": "features", "space": "words"},
                "timeout_ms": 1500,
            },
            "text": {
                "encoder": "text",
                "adapter": {"kind": "identity", "output": "meaning_vector", "space": "words"},
                "timeout_ms": 1500,
            },
        },
        "fusion": {"policy": "any"},
        "answer": {"kind": "retrieval", "top_k": 3},
        "backends": [{"backend": "onnxruntime", "deploy": True}, {"backend": "openvino"}],
        "gates": {
            "drift": {"false_alarm_rate": 0.01, "minimum_samples": 12},
            "recall": {"over_chance": 2.0},
        },
        "deploy": {
            "target": "local", "canary": [50, 100], "hold_s": 0.2, "minimum_requests": 5,
            "review": {"people": 2, "unattended": True},
        },
    }  # fmt: skip


def picture(shape: str, colour: str, paper: int = 245, ink_share: float = 1.0) -> Image.Image:
    """One shape on paper. `ink_share` below 1 thins the colour."""
    image = Image.new("RGB", (SIZE_PX, SIZE_PX), (paper,) * 3)
    ink = tuple(round(paper + (tone - paper) * ink_share) for tone in COLOURS[colour])
    draw, low, high, middle = ImageDraw.Draw(image), 8, SIZE_PX - 8, SIZE_PX // 2
    match shape:
        case "square":
            draw.rectangle((low, low, high, high), ink)
        case "circle":
            draw.ellipse((low, low, high, high), ink)
        case "triangle":
            draw.polygon([(low, high), (high, high), (middle, low)], ink)
        case "stripe":
            draw.rectangle((0, middle - 6, SIZE_PX, middle + 6), ink)
        case _:
            draw.rectangle((middle - 5, low, middle + 5, high), ink)
            draw.rectangle((low, middle - 5, high, middle + 5), ink)
    return image


def image_encoder(
    seed: int = 1, *, noise: float = 0.0, slow_rounds: int = 0, detour: float = 0.0
) -> onnx.ModelProto:
    """pixels [batch,3,32,32] → features [batch,24], logits [batch,8].

    `noise` moves the weights a little. `slow_rounds` adds convolutions whose result does not
    matter. `detour` is added and taken away again: what rounding loses of it, a compiler that sees
    through it does not lose.
    """
    drawn = np.random.default_rng(seed)
    pooled = 3 * GRID * GRID
    weight = drawn.normal(0, pooled**-0.5, (pooled, FEATURES)).astype(np.float32)
    bias = drawn.normal(0, 0.3, FEATURES).astype(np.float32)
    head = drawn.normal(0, FEATURES**-0.5, (FEATURES, len(COLOURS))).astype(np.float32)
    weight += np.random.default_rng(99).normal(0, 1, weight.shape).astype(np.float32) * noise
    side = 32 // GRID
    node = helper.make_node
    nodes = [
        node("AveragePool", ["pixels"], ["pooled"], kernel_shape=[side] * 2, strides=[side] * 2),
        node("Flatten", ["pooled"], ["flat"]),
        node("MatMul", ["flat", "weight"], ["projected"]),
        node("Add", ["projected", "bias"], ["shifted"]),
        node("Relu", ["shifted"], ["features"]),
        node("MatMul", ["features", "head"], ["logits"]),
    ]
    weights = {"weight": weight, "bias": bias, "head": head}
    if detour:
        nodes[3:4] = [
            node("Add", ["projected", "bias"], ["near"]),
            node("Add", ["near", "away"], ["far"]),
            node("Add", ["far", "home"], ["shifted"]),
        ]
        weights |= {"away": np.array([detour], np.float32), "home": np.array([-detour], np.float32)}
    if slow_rounds:
        nodes = _slowed(nodes, slow_rounds)
        weights |= {"lift": np.full((64, 3, 3, 3), 1e-3, np.float32),
                    "turn": np.full((64, 64, 3, 3), 1e-3, np.float32),
                    "nothing": np.zeros((1,), np.float32)}  # fmt: skip
    return _model(
        nodes,
        weights,
        [_value("pixels", ["batch", 3, 32, 32])],
        [_value("features", ["batch", FEATURES]), _value("logits", ["batch", len(COLOURS)])],
    )


def _slowed(nodes: list[onnx.NodeProto], rounds: int) -> list[onnx.NodeProto]:
    """The same answer after `rounds` convolutions, weighed with nothing."""
    node = helper.make_node
    work = [node("Conv", ["pixels", "lift"], ["work0"], pads=[1] * 4)]
    for number in range(rounds):
        work.append(node("Conv", [f"work{number}", "turn"], [f"work{number + 1}"], pads=[1] * 4))
    work += [
        node("GlobalAveragePool", [f"work{rounds}"], ["work_mean"]),
        node("ReduceMean", ["work_mean"], ["work_one"], keepdims=1),
        node("Flatten", ["work_one"], ["work_flat"]),
        node("Mul", ["work_flat", "nothing"], ["work_nothing"]),
    ]
    nodes[3] = node("Add", ["projected", "bias"], ["biased"])
    nodes[4:4] = [node("Add", ["biased", "work_nothing"], ["shifted"])]
    return work + nodes


def text_encoder(seed: int = 2) -> onnx.ModelProto:
    """ids, mask [batch,tokens] → meaning_vector [batch,24]: the mean of the words' vectors."""
    table = np.random.default_rng(seed).normal(0, 1, (len(WORDS), WIDTH)).astype(np.float32)
    table[: WORDS.index(next(iter(COLOURS)))] *= 0.1  # words that say little
    node = helper.make_node
    nodes = [
        node("Gather", ["table", "ids"], ["vectors"], axis=0),
        node("Cast", ["mask"], ["weights"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["weights", "last"], ["column"]),
        node("Mul", ["vectors", "column"], ["kept"]),
        node("ReduceSum", ["kept", "tokens"], ["total"], keepdims=0),
        node("ReduceSum", ["column", "tokens"], ["count"], keepdims=0),
        node("Max", ["count", "one"], ["divisor"]),
        node("Div", ["total", "divisor"], ["meaning_vector"]),
    ]
    weights = {
        "table": table,
        "last": np.array([-1], np.int64),
        "tokens": np.array([1], np.int64),
        "one": np.array([1], np.float32),
    }
    shape = ["batch", "tokens"]
    inputs = [_value(name, shape, TensorProto.INT64) for name in ("ids", "mask")]
    return _model(nodes, weights, inputs, [_value("meaning_vector", ["batch", WIDTH])])


def tokenizer() -> Tokenizer:
    """Words of the captions, [CLS] before and [SEP] after."""
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()  # type: ignore[assignment]
    made.pre_tokenizer = pre_tokenizers.Whitespace()  # type: ignore[assignment]
    made.post_processor = processors.TemplateProcessing(  # type: ignore[assignment]
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return made


def shape_number(shape: str) -> int:
    return SHAPES.index(shape)


def tensor(
    name: str, dtype: str, shape: list[int | str], meaning: str, **more: Any
) -> dict[str, Any]:
    return {"name": name, "dtype": dtype, "shape": shape, "meaning": meaning, **more}


def profile(**inputs: tuple[list[int], list[int], list[int]]) -> dict[str, Any]:
    return {
        name: dict(zip(("min", "opt", "max"), shapes, strict=True))
        for name, shapes in inputs.items()
    }


def save(model: onnx.ModelProto, path: Path) -> Path:
    path.write_bytes(model.SerializeToString())
    return path


def read_rows(folder: Path) -> list[Row]:
    lines = (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _value(name: str, shape: list[int | str], kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _model(
    nodes: list[onnx.NodeProto],
    weights: Mapping[str, np.ndarray[Any, Any]],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "small", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
