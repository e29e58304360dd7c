"""Which layers may be quantised: all that can, as few back in float as the limit asks for. Pure.

The layers are ranked by how bad each one is alone, and the worst go back to float until the rest
holds. A set counts only after it was evaluated itself: effects of layers do not add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Evaluate = Callable[[tuple[str, ...]], float]
"""How bad a model is with these layers quantised: at most 1 passes; NaN counts as infinite."""

MAX_RANKED = 64


@dataclass(frozen=True, slots=True)
class Choice:
    """`quantised` and `floating` in the layers' own order. Empty `quantised`: nothing holds."""

    quantised: tuple[str, ...]
    floating: tuple[str, ...]
    badness: float  # of the chosen set; of all layers together where nothing holds
    tries: int


def choose_layers(
    layers: Sequence[str], evaluate: Evaluate, *, screen: Evaluate | None = None
) -> Choice:
    """The largest set found that `evaluate` passes.

    `screen` ranks single layers, where a cheaper measure than `evaluate` is at hand. Above
    MAX_RANKED layers, neighbours are ranked together. With g groups it takes g screens and at most
    2 + 2 log2(g) evaluations. Where badness never falls when a layer is added, no shorter prefix
    of the ranking would have passed.
    """
    layers = tuple(layers)
    counted = _Counted(evaluate, screen or evaluate)
    whole = counted.evaluate(layers)
    if whole <= 1 or not layers:
        return Choice(layers, (), whole, counted.tries)
    groups = _grouped(layers)
    alone = [counted.screen(group) for group in groups]
    order = sorted(range(len(groups)), key=lambda index: (-alone[index], index))
    ranked = [groups[index] for index in order]
    found = _fewest_back(layers, ranked, counted)
    if found is None:
        return Choice((), layers, whole, counted.tries)
    kept, badness = found
    return Choice(kept, tuple(x for x in layers if x not in set(kept)), badness, counted.tries)


def _fewest_back(
    layers: tuple[str, ...], ranked: list[tuple[str, ...]], counted: _Counted
) -> tuple[tuple[str, ...], float] | None:
    """Double the number of groups put back until it holds, then halve the gap."""

    def without(count: int) -> tuple[str, ...]:
        back = {name for group in ranked[:count] for name in group}
        return tuple(name for name in layers if name not in back)

    failed, count = 0, 1
    while True:
        if count >= len(ranked):
            count = len(ranked) - 1  # all back is no quantised model
        if count <= failed:
            return None
        badness = counted.evaluate(without(count))
        if badness <= 1:
            break
        failed, count = count, count * 2
    best = without(count), badness
    while count - failed > 1:
        middle = (failed + count) // 2
        badness = counted.evaluate(without(middle))
        if badness <= 1:
            count, best = middle, (without(middle), badness)
        else:
            failed = middle
    return best


def _grouped(layers: tuple[str, ...]) -> list[tuple[str, ...]]:
    size = math.ceil(len(layers) / MAX_RANKED)
    return [layers[start : start + size] for start in range(0, len(layers), size)]


class _Counted:
    """Both measures, counted, with NaN as infinity."""

    def __init__(self, evaluate: Evaluate, screen: Evaluate) -> None:
        self._evaluate = evaluate
        self._screen = screen
        self.tries = 0

    def evaluate(self, layers: tuple[str, ...]) -> float:
        return self._measure(self._evaluate, layers)

    def screen(self, layers: tuple[str, ...]) -> float:
        return self._measure(self._screen, layers)

    def _measure(self, measure: Evaluate, layers: tuple[str, ...]) -> float:
        self.tries += 1
        badness = measure(layers)
        return math.inf if math.isnan(badness) else badness
