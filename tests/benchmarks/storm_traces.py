"""Seeded traces for `shape-storm`: batches and lengths that change, and then grow.

Lengths are multiples of 8 or 16, as tokenizers are often told to pad to, so that shapes do repeat:
that is generous to whoever compiles for each shape. From `SHIFT` on, some sequences are longer than
anything the contract was profiled for.

`queries` was looked at while the benchmark was made; nothing was tuned on `reports`.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

SHIFT, CHANGE = 0.4, 0.7
"""Shares of the trace: where longer sequences begin, where the engine for them is waited for."""


@dataclass(frozen=True, slots=True)
class StormTrace:
    """`yesterday` is what profiles are planned from; `shapes` are (batch, tokens) in order."""

    name: str
    yesterday: tuple[tuple[int, int], ...]
    shapes: tuple[tuple[int, int], ...]
    largest: tuple[int, int]  # of the contract as it was released


@dataclass(frozen=True, slots=True)
class _Kind:
    batches: tuple[int, ...]
    lengths: tuple[tuple[float, float, int], ...]  # logarithm's mean and deviation, weight
    multiple: int
    long_share: float
    long: tuple[int, int]


_KINDS = {
    "queries": _Kind((1, 1, 1, 1, 2, 4), ((2.3, 0.5, 70), (3.6, 0.5, 30)), 8, 0.15, (136, 192)),
    "reports": _Kind((1, 1, 2, 3, 6), ((3.2, 0.6, 60), (4.2, 0.3, 40)), 16, 0.25, (208, 256)),
}
_SEEDS = {"queries": 21, "reports": 22}
LARGEST = (8, 128)


def make_storm(name: str, requests: int) -> StormTrace:
    """A trace from its seed."""
    kind, draw = _KINDS[name], random.Random(_SEEDS[name])
    yesterday = tuple(_usual(kind, draw) for _ in range(2000))
    shapes = []
    for index in range(requests):
        long = index >= SHIFT * requests and draw.random() < kind.long_share
        shapes.append((1, draw.randrange(kind.long[0], kind.long[1] + 1, kind.multiple)) if long
                      else _usual(kind, draw))  # fmt: skip
    return StormTrace(name, yesterday, tuple(shapes), LARGEST)


def _usual(kind: _Kind, draw: random.Random) -> tuple[int, int]:
    mean, deviation, _ = draw.choices(kind.lengths, [item[2] for item in kind.lengths])[0]
    batch = draw.choice(kind.batches)
    longest = max(draw.lognormvariate(mean, deviation) for _ in range(batch))
    padded = kind.multiple * math.ceil(longest / kind.multiple)
    return batch, min(LARGEST[1], padded)
