"""Encoders of the benchmark `compat` that are made to break."""

from __future__ import annotations

import torch

from flows.examples.incident.text import TORCH_EPSILON, Text


def overflowing() -> Text:
    """Text 2.1.1 with its last feed-forward so loud that half precision ends (65504)."""
    made = Text(TORCH_EPSILON)
    with torch.no_grad():
        made.blocks[-1].get_parameter("rise.weight").mul_(3e4)
        made.blocks[-1].get_parameter("fall.weight").mul_(3e4)
    return made
