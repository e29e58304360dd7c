"""The pair: the text encoder reads the vision encoder's tokens beside its words."""

from __future__ import annotations

from torch import Tensor, nn

from flows.examples.incident.text import Text
from flows.examples.incident.vision import Vision


class Fusion(nn.Module):
    """Ids [batch, words] and pixels uint8 [batch, 3, 224, 224] → vector [batch, 192]."""

    def __init__(self, text: Text, vision: Vision) -> None:
        super().__init__()
        self.text, self.vision = text, vision

    def forward(self, ids: Tensor, pixels: Tensor) -> Tensor:
        result: Tensor = self.text(ids, self.vision(pixels))
        return result
