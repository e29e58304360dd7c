"""The vision encoder: a picture as 196 tokens, weighted by how much they matter.

The geometry is that of ViT-Ti/16 (Touvron et al., 2021), two blocks deep. Every token is projected,
brought to length one and weighted by attention pooling, so that the tokens of a picture add up to
its vector. Version 1.8.3 hands them over like that; 1.8.4 brings each to a root mean square of one
again, which is the scale of the words that it is read beside.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SIZE_PX = 224
PATCH_PX = 16
WIDTH = 192
HEADS = 3
BLOCKS = 2
SEED = 183
_INIT = 0.02  # of linear layers and positions, as in BERT and ViT


def vision_1_8_3() -> Vision:
    """Tokens that add up to the picture's vector."""
    return Vision(rescale=False)


def vision_1_8_4() -> Vision:
    """The same tokens, each at a root mean square of one."""
    return Vision(rescale=True)


class _Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mix, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.rise, self.fall = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, states: Tensor) -> Tensor:
        parts = self.mix(self.before(states)).chunk(3, -1)
        query, key, value = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(query, key, value)
        states = states + self.out(mixed.transpose(1, 2).flatten(2))
        result: Tensor = states + self.fall(F.gelu(self.rise(self.between(states))))
        return result


class Vision(nn.Module):
    """Pixels uint8 [batch, 3, 224, 224] → tokens [batch, 196, 192]."""

    def __init__(self, *, rescale: bool) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(SEED)
        self.patches = nn.Conv2d(3, WIDTH, PATCH_PX, PATCH_PX)
        self.positions = nn.Parameter(torch.zeros((SIZE_PX // PATCH_PX) ** 2, WIDTH))
        self.blocks = nn.ModuleList(_Block() for _ in range(BLOCKS))
        self.norm = nn.LayerNorm(WIDTH)
        self.project = nn.Linear(WIDTH, WIDTH)
        self.rescale = rescale
        seed_weights(self, generator)
        self.matters = nn.Parameter(torch.randn(WIDTH, generator=generator))
        self.eval().requires_grad_(False)

    def forward(self, pixels: Tensor) -> Tensor:
        tokens, scores = self.look(pixels)
        result = tokens * scores.softmax(1).unsqueeze(-1)
        return F.normalize(result, dim=-1) * WIDTH**0.5 if self.rescale else result

    def look(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens of length one [batch, 196, 192], and how much each matters [batch, 196]."""
        scaled = pixels.to(self.positions.dtype) / 127.5 - 1.0
        states = self.patches(scaled).flatten(2).transpose(1, 2) + self.positions
        for block in self.blocks:
            states = block(states)
        states = self.norm(states)
        return F.normalize(self.project(states), dim=-1), states @ self.matters * WIDTH**-0.5


def seed_weights(module: nn.Module, generator: torch.Generator) -> None:
    """Weights with a standard deviation of 0.02, norms at one, biases at zero."""
    for name, parameter in module.named_parameters():
        if parameter.ndim > 1:
            nn.init.normal_(parameter, std=_INIT, generator=generator)
        else:
            nn.init.constant_(parameter, 1.0 if "norm" in name and "weight" in name else 0.0)
