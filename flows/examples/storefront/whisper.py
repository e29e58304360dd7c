"""Whisper's encoder and decoder for inference, split where a service wants to split them.

"Robust Speech Recognition via Large-Scale Weak Supervision" (Radford et al., 2022), tiny.en. The
encoder half ends with the keys and values that the decoder's cross-attention reads: they depend on
the recording alone, so they are computed once and not at every token. The decoder is stateless: it
takes the whole prefix and gives the scores of the next token.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH = 384
HEADS = 6
LAYERS = 4
INNER = 1536
MELS = 80
VOCABULARY = 51_864
FRAMES_PER_S = 50
MAX_TOKENS = 32

Arrays = Mapping[str, npt.NDArray[Any]]


class _Attention(nn.Module):
    """Queries from `states` against given keys and values; `bias` hides what comes later."""

    def __init__(self) -> None:
        super().__init__()
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
        query, key, value = _split(query), _split(key), _split(value)
        scores = query @ key.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5
        if bias is not None:
            scores = scores + bias
        mixed = (scores.softmax(-1) @ value).transpose(1, 2).flatten(2)
        result: Tensor = self.output(mixed)
        return result


class _Block(nn.Module):
    """Pre-norm self-attention, cross-attention where there is a memory, and a feed-forward part."""

    def __init__(self, *, cross: bool) -> None:
        super().__init__()
        self.norm, self.inward = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
        self.attention = _Attention()
        if cross:
            self.cross_norm, self.cross_query = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)
            self.cross_attention = _Attention()
        self.inner_norm = nn.LayerNorm(WIDTH)
        self.rise, self.fall = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)

    def forward(
        self, states: Tensor, bias: Tensor | None = None, memory: Tensor | None = None
    ) -> Tensor:
        query, key, value = self.inward(self.norm(states)).chunk(3, -1)
        states = states + self.attention(query, key, value, bias)
        if memory is not None:
            key, value = memory.chunk(2, -1)
            query = self.cross_query(self.cross_norm(states))
            states = states + self.cross_attention(query, key, value, None)
        result: Tensor = states + self.fall(F.gelu(self.rise(self.inner_norm(states))))
        return result

    def load(self, weights: Arrays, name: str) -> None:
        _load(self.norm, weights, f"{name}/self_attention/layer_norm")
        _load(self.inward, weights, f"{name}/self_attention/linear_0")
        _load(self.attention.output, weights, f"{name}/self_attention/linear_1")
        if hasattr(self, "cross_norm"):
            _load(self.cross_norm, weights, f"{name}/attention/layer_norm")
            _load(self.cross_query, weights, f"{name}/attention/linear_0")
            _load(self.cross_attention.output, weights, f"{name}/attention/linear_2")
        _load(self.inner_norm, weights, f"{name}/ffn/layer_norm")
        _load(self.rise, weights, f"{name}/ffn/linear_0")
        _load(self.fall, weights, f"{name}/ffn/linear_1")


class WhisperEncoder(nn.Module):
    """Log-mel [1, 80, 100 * s] → memory [1, layers, 50 * s, 768] (keys, then values)."""

    def __init__(self, weights: Arrays, *, seconds: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(MELS, WIDTH, 3, padding=1)
        self.halving = nn.Conv1d(WIDTH, WIDTH, 3, stride=2, padding=1)
        positions = weights["encoder/position_encodings/encodings"][: seconds * FRAMES_PER_S]
        self.positions = nn.Parameter(_tensor(positions))
        self.blocks = _blocks(weights, "encoder", cross=False)
        self.norm = nn.LayerNorm(WIDTH)
        self.memory = nn.ModuleList(nn.Linear(WIDTH, 2 * WIDTH) for _ in range(LAYERS))
        self._load(weights)
        self.eval().requires_grad_(False)

    def forward(self, mel: Tensor) -> Tensor:
        states = F.gelu(self.halving(F.gelu(self.convolution(mel)))).transpose(1, 2)
        states = states + self.positions
        for block in self.blocks:
            states = block(states)
        states = self.norm(states)
        return torch.stack([layer(states) for layer in self.memory], 1)

    def _load(self, weights: Arrays) -> None:
        _load(self.convolution, weights, "encoder/conv1")
        _load(self.halving, weights, "encoder/conv2")
        _load(self.norm, weights, "encoder/layer_norm")
        for index, layer in enumerate(self.memory):
            _load(layer, weights, f"decoder/layer_{index}/attention/linear_1")


class WhisperDecoder(nn.Module):
    """Token ids int64 [1, tokens], memory → logits [1, 51864] of the next token."""

    later: Tensor

    def __init__(self, weights: Arrays) -> None:
        super().__init__()
        self.words = nn.Parameter(_tensor(weights["decoder/embeddings/weight"]))
        positions = weights["decoder/position_encodings/encodings"][:MAX_TOKENS]
        self.positions = nn.Parameter(_tensor(positions))
        self.blocks = _blocks(weights, "decoder", cross=True)
        self.norm = nn.LayerNorm(WIDTH)
        hidden = torch.full((MAX_TOKENS, MAX_TOKENS), -10_000.0).triu(1)
        self.register_buffer("later", hidden, persistent=False)
        _load(self.norm, weights, "decoder/layer_norm")
        self.eval().requires_grad_(False)

    def forward(self, tokens: Tensor, memory: Tensor) -> Tensor:
        length = tokens.shape[1]
        states = F.embedding(tokens, self.words) + self.positions[:length]
        bias = self.later[:length, :length]
        for index, block in enumerate(self.blocks):
            states = block(states, bias, memory[:, index])
        return F.linear(self.norm(states[:, -1]), self.words)


def _blocks(weights: Arrays, half: str, *, cross: bool) -> nn.ModuleList:
    blocks = [_Block(cross=cross) for _ in range(LAYERS)]
    for index, block in enumerate(blocks):
        block.load(weights, f"{half}/layer_{index}")
    return nn.ModuleList(blocks)


def _load(module: nn.Module, weights: Arrays, name: str) -> None:
    """Copy a layer's two tensors; norms call theirs gamma and beta in the file."""
    first, second = ("gamma", "beta") if isinstance(module, nn.LayerNorm) else ("weight", "bias")
    module.load_state_dict(
        {
            "weight": _tensor(weights[f"{name}/{first}"]),
            "bias": _tensor(weights[f"{name}/{second}"]),
        }
    )


def _tensor(array: npt.NDArray[Any]) -> Tensor:
    return torch.from_numpy(array.astype(np.float32))


def _split(states: Tensor) -> Tensor:
    """[batch, positions, width] → [batch, heads, positions, width / heads]."""
    return states.reshape(*states.shape[:2], HEADS, WIDTH // HEADS).transpose(1, 2)
