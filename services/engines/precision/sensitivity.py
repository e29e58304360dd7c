"""Which layers may be quantised: all that can, as few back in float as the limit asks for. Pure.

The layers are ranked by how bad each one is alone, and the worst go back to float until the rest
holds. A set counts only after it was evaluated itself: effects of layers do not add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
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


class Search:
    """A search over sets of layers; what was measured once is not measured again."""

    def __init__(self, evaluate: Evaluate, screen: Evaluate | None = None) -> None:
        """`screen` ranks single layers, where a cheaper measure than `evaluate` is at hand."""
        self._evaluate = _Remembered(evaluate)
        self._screen = self._evaluate if screen is None else _Remembered(screen)

    @property
    def tries(self) -> int:
        shared = self._evaluate is self._screen
        return self._evaluate.tries + (0 if shared else self._screen.tries)

    def promise(self, layers: Sequence[str]) -> float:
        """How many layers would hold if errors were independent: to compare ways to quantise.

        The errors of single layers add up in squares, from the least on.
        """
        layers = tuple(layers)
        if self._evaluate(layers) <= 1:
            return len(layers) + 1 - self._evaluate(layers)
        total, count = 0.0, 0
        for badness, size in sorted(
            (self._screen(group), len(group)) for group in _grouped(layers)
        ):
            total += badness**2
            if total > 1:
                break
            count += size
        return float(count)

    def choose(self, layers: Sequence[str]) -> Choice:
        """The largest set found that `evaluate` passes.

        Above MAX_RANKED layers, neighbours are ranked together. With g groups it takes g screens
        and at most 3 + 2 log2(g) + g evaluations. Where badness never falls when a layer is added,
        no group that is left in float could be quantised as well.
        """
        layers = tuple(layers)
        whole = self._evaluate(layers)
        if whole <= 1 or not layers:
            return Choice(layers, (), whole, self.tries)
        groups = _grouped(layers)
        alone = [self._screen(group) for group in groups]
        order = sorted(range(len(groups)), key=lambda index: (-alone[index], index))
        found = _fewest_back(layers, [groups[index] for index in order], self._evaluate)
        if found is None:
            return Choice((), layers, whole, self.tries)
        count, badness = found
        back = [groups[index] for index in reversed(order[:count])]
        kept, badness = _add_again(layers, back, badness, self._evaluate)
        return Choice(kept, _without(layers, kept), badness, self.tries)


def choose_layers(
    layers: Sequence[str], evaluate: Evaluate, *, screen: Evaluate | None = None
) -> Choice:
    """One search from nothing: see `Search`."""
    return Search(evaluate, screen).choose(layers)


def _fewest_back(
    layers: tuple[str, ...], ranked: list[tuple[str, ...]], evaluate: Evaluate
) -> tuple[int, float] | None:
    """How many of the worst go back: double the number until it holds, then halve the gap."""
    failed, count = 0, 1
    badness = math.inf
    while count < len(ranked):  # all back is no quantised model
        badness = evaluate(_without(layers, _flat(ranked[:count])))
        if badness <= 1 or count == len(ranked) - 1:
            break
        failed, count = count, min(count * 2, len(ranked) - 1)
    if not badness <= 1:
        return None
    while count - failed > 1:
        middle = (failed + count) // 2
        found = evaluate(_without(layers, _flat(ranked[:middle])))
        if found <= 1:
            count, badness = middle, found
        else:
            failed = middle
    return count, badness


def _add_again(
    layers: tuple[str, ...], back: list[tuple[str, ...]], badness: float, evaluate: Evaluate
) -> tuple[tuple[str, ...], float]:
    """Of what went back, the least bad first, whatever still holds together with the rest."""
    floating = set(_flat(back))
    for group in back:
        tried = floating - set(group)
        found = evaluate(_without(layers, tried))
        if found <= 1:
            floating, badness = tried, found
    return _without(layers, floating), badness


def _flat(groups: list[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(name for group in groups for name in group)


def _without(layers: tuple[str, ...], left_out: Collection[str]) -> tuple[str, ...]:
    dropped = frozenset(left_out)
    return tuple(name for name in layers if name not in dropped)


def _grouped(layers: tuple[str, ...]) -> list[tuple[str, ...]]:
    size = math.ceil(len(layers) / MAX_RANKED)
    return [layers[start : start + size] for start in range(0, len(layers), size)]


class _Remembered:
    """A measure, counted, each set once, with NaN as infinity."""

    def __init__(self, measure: Evaluate) -> None:
        self._measure = measure
        self._known: dict[tuple[str, ...], float] = {}

    @property
    def tries(self) -> int:
        return len(self._known)

    def __call__(self, layers: tuple[str, ...]) -> float:
        if layers not in self._known:
            badness = self._measure(layers)
            self._known[layers] = math.inf if math.isnan(badness) else badness
        return self._known[layers]
