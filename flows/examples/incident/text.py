"""The text encoder: words, and the tokens of a picture beside them, as one vector.

A BERT in small: post-norm, mean over the sequence. Its layer norms are written out in the type they
run in, as in the first releases of BERT and as every exporter below ONNX opset 17 writes them.
Versions 2.1.0 and 2.1.1 differ in the epsilon alone.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from flows.examples.incident.vision import HEADS, WIDTH, seed_weights

BLOCKS = 2
VOCABULARY = 4096
POSITIONS = 64
SEED = 210
BERT_EPSILON, TORCH_EPSILON = 1e-12, 1e-5


def text_2_1_0() -> Text:
    """Epsilon 1e-12: BERT's, which half precision rounds to nothing (its least step is 6e-8)."""
    return Text(BERT_EPSILON)


def text_2_1_1() -> Text:
    """The same weights with epsilon 1e-5: torch's default."""
    return Text(TORCH_EPSILON)


class WrittenNorm(nn.Module):
    """(x - mean) / sqrt(variance + epsilon), every step in the type of x."""

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))
        self.eps = epsilon

    def forward(self, states: Tensor) -> Tensor:
        centred = states - states.mean(-1, keepdim=True)
        variance = (centred * centred).mean(-1, keepdim=True)
        return centred / torch.sqrt(variance + self.eps) * self.weight + self.bias


class _Block(nn.Module):
    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.mix, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.rise, self.fall = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.mixed_norm, self.norm = WrittenNorm(epsilon), WrittenNorm(epsilon)

    def forward(self, states: Tensor) -> Tensor:
        parts = self.mix(states).chunk(3, -1)
        query, key, value = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(query, key, value)
        states = self.mixed_norm(states + self.out(mixed.transpose(1, 2).flatten(2)))
        result: Tensor = self.norm(states + self.fall(F.gelu(self.rise(states))))
        return result


class Text(nn.Module):
    """Ids int64 [batch, words], and tokens [batch, n, 192] where given → vector [batch, 192].

    The tokens of a picture are normed on arrival, like the words; they bring their own positions.
    """

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(SEED)
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.zeros(POSITIONS, WIDTH))
        self.words_norm, self.arrival_norm = WrittenNorm(epsilon), WrittenNorm(epsilon)
        self.blocks = nn.ModuleList(_Block(epsilon) for _ in range(BLOCKS))
        seed_weights(self, generator)
        self.eval().requires_grad_(False)

    def forward(self, ids: Tensor, tokens: Tensor | None = None) -> Tensor:
        states = self.words_norm(self.words(ids) + self.positions[: ids.shape[1]])
        if tokens is not None:
            states = torch.cat((self.arrival_norm(tokens), states), 1)
        for block in self.blocks:
            states = block(states)
        result: Tensor = states.mean(1)
        return result
