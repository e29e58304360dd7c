"""Tiny encoders for tests: contracts here, torch factories as the text of a module of their own.

The factories live in a file that tests write next to a "pipeline", as a user's would.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from validators.contracts.encoder import EncoderContract, PreprocessSpec
from validators.contracts.engine import Precision, ShapeProfile, ShapeRange
from validators.contracts.pipeline import EncoderEntry, EncoderSource, SourceKind
from validators.contracts.tensors import DType, Meaning, TensorSpec

FACTORIES = """
import ctypes, os, time
import torch

class Image(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, stride=2)
        self.head = torch.nn.Linear(8, 4)
    def forward(self, pixels):
        features = torch.relu(self.conv(pixels)).mean((2, 3))
        return features, self.head(features)

class Text(torch.nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.table = torch.nn.Embedding(100, width)
        self.layer = torch.nn.TransformerEncoderLayer(
            width, 2, 2 * width, batch_first=True, dropout=0.0
        )
    def forward(self, ids, mask):
        hidden = self.layer(self.table(ids), src_key_padding_mask=mask == 0)
        weights = mask.unsqueeze(-1).to(hidden.dtype)
        pooled = (hidden * weights).sum(1) / weights.sum(1)
        embedding = pooled / pooled.norm(dim=1, keepdim=True)
        return embedding

class Flattened(torch.nn.Module):
    def forward(self, pixels):
        return pixels.mean((2, 3)).reshape(1, -1), pixels.mean((1, 2, 3)).reshape(1, -1)

def image(): return Image()
def text(): return Text()
def wide(): return Text(64)
def flattened(): return Flattened()
def nan_weights():
    made = Image()
    with torch.no_grad(): made.head.weight[0, 0] = float("nan")
    return made
def overflowing():
    made = Image()
    with torch.no_grad(): made.head.weight[1, 1] = float("inf")
    return made
def loses_a_tensor():
    class Lossy(Image):
        def forward(self, pixels): return super().forward(pixels)[0]
    return Lossy()
def raises(): raise ZeroDivisionError("a factory with a bug")
def not_a_module(): return 3
def segfaults(): ctypes.string_at(0)
def exits(): os._exit(7)
def fills_the_disk(): open("/dev/full", "wb", buffering=0).write(b"x")
def hangs():
    import subprocess
    child = subprocess.Popen(["sleep", "600"])
    with open(os.environ["HOME"] + "/grandchild.pid", "w") as file: file.write(str(child.pid))
    time.sleep(600)
def eats_memory():
    kept = []
    while True:
        kept.append(b"x" * 50_000_000)
        time.sleep(0.02)
"""


def write_factories(folder: Path) -> None:
    (folder / "tiny_models.py").write_text(FACTORIES)


def profile(*ranges: tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...]]) -> ShapeProfile:
    return ShapeProfile(tuple(ShapeRange(*item) for item in ranges))


IMAGE = EncoderContract(
    name="image",
    version="1.0.0",
    modality="image",
    inputs=(
        TensorSpec(
            "pixels", DType.FP32, ("batch", 3, 16, 16), Meaning.PIXELS, value_range=(-1.0, 1.0)
        ),
    ),
    outputs=(
        TensorSpec("features", DType.FP32, ("batch", 8), Meaning.GLOBAL_EMBEDDING, space="tiny"),
        TensorSpec("logits", DType.FP32, ("batch", 4), Meaning.LOGITS),
    ),
    preprocess=PreprocessSpec("tensor"),
)
IMAGE_PROFILES = (profile(("pixels", (1, 3, 16, 16), (2, 3, 16, 16), (8, 3, 16, 16))),)

TEXT = EncoderContract(
    name="text",
    version="1.0.0",
    modality="text",
    inputs=(
        TensorSpec("ids", DType.INT64, ("batch", "tokens"), Meaning.TOKEN_IDS, value_range=(0, 99)),
        TensorSpec("mask", DType.INT64, ("batch", "tokens"), Meaning.ATTENTION_MASK),
    ),
    outputs=(
        TensorSpec("embedding", DType.FP32, ("batch", 16), Meaning.GLOBAL_EMBEDDING, space="t"),
    ),
    preprocess=PreprocessSpec("tensor"),
)
TEXT_PROFILES = (
    profile(("ids", (1, 2), (1, 8), (1, 32)), ("mask", (1, 2), (1, 8), (1, 32))),
    profile(("ids", (4, 2), (4, 8), (8, 16)), ("mask", (4, 2), (4, 8), (8, 16))),
)


def image_entry(
    factory: str = "image", contract: EncoderContract = IMAGE, *, onnx: str | None = None
) -> EncoderEntry:
    source = (
        EncoderSource(SourceKind.TORCH, f"tiny_models:{factory}")
        if onnx is None
        else EncoderSource(SourceKind.ONNX, onnx)
    )
    return EncoderEntry(contract, source, Precision.FP32, IMAGE_PROFILES)


TEXT_ENTRY = EncoderEntry(
    TEXT, EncoderSource(SourceKind.TORCH, "tiny_models:text"), Precision.FP32, TEXT_PROFILES
)

WIDE_ENTRY = EncoderEntry(
    dataclasses.replace(
        TEXT, outputs=(dataclasses.replace(TEXT.outputs[0], shape=("batch", 64)),), name="wide"
    ),
    EncoderSource(SourceKind.TORCH, "tiny_models:wide"), Precision.FP32, TEXT_PROFILES,
)  # fmt: skip
"""As the text encoder, with matrices large enough for weights in blocks."""
