"""A BERT sentence encoder for inference: token ids in, one unit vector a text out.

"MiniLM" (Wang et al., 2020) in the shape of the sentence-transformers checkpoint: post-norm BERT,
mean over the tokens that are not padding, L2 norm 1. Pooling and norm are part of the graph, so
that no client can forget them.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH = 384
HEADS = 12
LAYERS = 6
INNER = 1536
VOCABULARY = 30_522
POSITIONS = 512
NORM_EPSILON = 1e-12
_MASKED = -10_000.0  # finite in half precision too


class _Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.output = nn.Linear(WIDTH, WIDTH)
        self.attention_norm = nn.LayerNorm(WIDTH, NORM_EPSILON)
        self.rise, self.fall = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, NORM_EPSILON)

    def forward(self, states: Tensor, bias: Tensor) -> Tensor:
        query, key, value = (_split(part(states)) for part in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5 + bias
        mixed = (scores.softmax(-1) @ value).transpose(1, 2).flatten(2)
        states = self.attention_norm(states + self.output(mixed))
        result: Tensor = self.norm(states + self.fall(F.gelu(self.rise(states))))
        return result


class MiniLm(nn.Module):
    """Ids and mask int64 [batch, tokens] → sentence vectors float32 [batch, 384], norm 1."""

    def __init__(self, checkpoint: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.zeros(POSITIONS, WIDTH))
        self.norm = nn.LayerNorm(WIDTH, NORM_EPSILON)
        self.layers = nn.ModuleList(_Layer() for _ in range(LAYERS))
        self.load_state_dict(rename(checkpoint))
        self.eval().requires_grad_(False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        states = self.norm(self.words(input_ids) + self.positions[: input_ids.shape[1]])
        kept = attention_mask.to(states.dtype)
        bias = ((1.0 - kept) * _MASKED)[:, None, None, :]
        for layer in self.layers:
            states = layer(states, bias)
        total = (states * kept[:, :, None]).sum(1)
        mean = total / kept.sum(1, keepdim=True).clamp(min=1.0)
        vector: Tensor = mean / mean.square().sum(1, keepdim=True).sqrt().clamp(min=1e-9)
        return vector


_LAYER_PARTS = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "output",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "rise",
    "output.dense": "fall",
    "output.LayerNorm": "norm",
}


def rename(checkpoint: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The checkpoint's tensors under this module's names.

    The row of token type 0 is added to every token, so it is folded into the positions; the pooler
    is not part of a sentence encoder.
    """
    first_type = checkpoint["embeddings.token_type_embeddings.weight"][0]
    renamed = {
        "words.weight": checkpoint["embeddings.word_embeddings.weight"],
        "positions": checkpoint["embeddings.position_embeddings.weight"] + first_type,
        "norm.weight": checkpoint["embeddings.LayerNorm.weight"],
        "norm.bias": checkpoint["embeddings.LayerNorm.bias"],
    }
    for index in range(LAYERS):
        for theirs, ours in _LAYER_PARTS.items():
            for kind in ("weight", "bias"):
                source = f"encoder.layer.{index}.{theirs}.{kind}"
                renamed[f"layers.{index}.{ours}.{kind}"] = checkpoint[source]
    return renamed


def _split(states: Tensor) -> Tensor:
    """[batch, tokens, width] → [batch, heads, tokens, width / heads]."""
    return states.reshape(*states.shape[:2], HEADS, WIDTH // HEADS).transpose(1, 2)
