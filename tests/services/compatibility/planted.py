"""Small modules with one planted fault each, as the text of a module beside a pipeline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.services.engines.models import profile
from validators.contracts.encoder import EncoderContract, PreprocessSpec
from validators.contracts.engine import Precision
from validators.contracts.pipeline import EncoderEntry, EncoderSource, SourceKind
from validators.contracts.tensors import DType, Meaning, TensorSpec

FACTORIES = """
import ctypes, time
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first = nn.Linear(width, 2 * width)
        self.second = nn.Linear(2 * width, width)
    def forward(self, x):
        return x + self.second(torch.relu(self.first(self.norm(x))))

class Stack(nn.Module):
    def __init__(self, width=16, depth=4):
        super().__init__()
        torch.manual_seed(3)
        self.enter = nn.Linear(16, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.leave = nn.LayerNorm(width)
    def forward(self, features):
        x = self.enter(features)
        for block in self.blocks:
            x = block(x)
        return self.leave(x)

def good(): return Stack()
def eps():
    made = Stack()
    made.blocks[2].norm.eps = 1e-1
    return made
def scaled():
    made = Stack()
    with torch.no_grad(): made.blocks[1].first.weight.mul_(1.5)
    return made
def swapped():
    made = Stack()
    made.blocks = nn.ModuleList([made.blocks[i] for i in (0, 2, 1, 3)])
    return made

class Rare(Stack):
    # NaN for an item whose first feature is below -8: a root of what training never saw negative
    def __init__(self):
        super().__init__()
        self.root = Root()
    def forward(self, features):
        return super().forward(self.root(features))

class Root(nn.Module):
    def forward(self, x):
        return x * torch.sqrt(x[:, :1] + 8.0) / torch.sqrt(x[:, :1] + 8.0)

def rare(): return Rare()

class Hidden(Stack):
    # overflows half precision in the middle; what comes out is finite again
    def __init__(self):
        super().__init__()
        self.raise_ = nn.Linear(16, 16, bias=False)
        self.bound = nn.Hardtanh()
        with torch.no_grad():
            self.raise_.weight.copy_(torch.eye(16) * 1e6)
    def forward(self, features):
        return self.bound(self.raise_(super().forward(features)))
def hidden(): return Hidden()

class Hot(Hidden):
    # comes close to the end of half precision
    def __init__(self):
        super().__init__()
        with torch.no_grad(): self.raise_.weight.copy_(torch.eye(16) * 9e3)
def hot(): return Hot()

class Crash(Stack):
    def forward(self, features):
        if not torch.compiler.is_compiling(): ctypes.string_at(0)
        return super().forward(features)
def crashes(): return Crash()

class Hang(Stack):
    def forward(self, features):
        if not torch.compiler.is_compiling(): time.sleep(600)
        return super().forward(features)
def hangs(): return Hang()
"""

CONTRACT = EncoderContract(
    name="stack",
    version="1.0.0",
    modality="image",
    inputs=(TensorSpec("features", DType.FP32, ("batch", 16), Meaning.PIXELS),),
    outputs=(TensorSpec("vector", DType.FP32, ("batch", 16), Meaning.GLOBAL_EMBEDDING, space="s"),),
    preprocess=PreprocessSpec("tensor"),
)
PROFILES = (profile(("features", (1, 16), (1, 16), (4, 16))),)


def write_factories(folder: Path) -> None:
    (folder / "planted_models.py").write_text(FACTORIES)


def entry(factory: str, version: str = "1.0.0") -> EncoderEntry:
    return EncoderEntry(
        replace(CONTRACT, version=version),
        EncoderSource(SourceKind.TORCH, f"planted_models:{factory}"),
        Precision.FP32,
        PROFILES,
    )
