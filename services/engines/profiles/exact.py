"""The best profiles over one dimension, exactly.

Sorted sizes are cut into consecutive groups, each served by a profile at its largest size. A group
of sizes i+1 … j costs its weight times the work at size j. That cost satisfies the quadrangle
inequality (for a ≤ b ≤ c ≤ d both sides differ by weight(a, b) times work(d) - work(c) ≥ 0), so the
best last cut moves right with j and divide and conquer fills a layer of n sizes in O(n log n)
instead of O(n²) (Yao 1980, "Efficient dynamic programming using quadrangle inequalities"; Aggarwal
et al. 1987 do it in O(n)).

With a bound on the sum of the profiles' memory there are two aims, and each state keeps its Pareto
front of (memory, cost): exact, and given up when the fronts grow beyond MAX_LABELS.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from services.engines.profiles.cost import Amounts

MAX_LABELS = 400_000
"""Transitions the bounded program may try: about a second."""

Cuts = tuple[int, ...]  # indices into the sorted sizes, ascending; the last is the last size


@dataclass(frozen=True, slots=True)
class Line:
    """One dimension: for sizes in ascending order their weight, work, and bytes of a profile."""

    weights: Amounts
    work: Amounts
    memory: Amounts


@dataclass(frozen=True, slots=True)
class Bounded:
    """The best cuts found within the memory, and whether nothing better exists."""

    cuts: Cuts
    proven: bool


def best_cuts(line: Line, k: int) -> Cuts:
    """At most `k` profiles with least work whatever they hold; the fewest among equals."""
    count = len(line.weights)
    before = np.concatenate([[0.0], np.cumsum(line.weights)])
    cost = line.work * before[1:]
    best, best_layer = cost[-1], 0
    origins: list[npt.NDArray[np.int64]] = []
    for layer in range(1, min(k, count)):
        cost, origin = _next_layer(cost, before, line.work)
        origins.append(origin)
        if cost[-1] < best * (1 - 1e-12):
            best, best_layer = cost[-1], layer
    cuts = [count - 1]
    for origin in reversed(origins[:best_layer]):
        cuts.append(int(origin[cuts[-1]]))
    return tuple(reversed(cuts))


def _next_layer(
    cost: Amounts, before: Amounts, work: Amounts
) -> tuple[Amounts, npt.NDArray[np.int64]]:
    """Costs with one profile more: the last one ends at j, the ones before it at origin[j] < j."""
    count = len(cost)
    better = np.full(count, np.inf)
    origin = np.zeros(count, np.int64)
    spans = [(1, count - 1, 0, count - 2)]
    while spans:
        low, high, first, last = spans.pop()
        if low > high:
            continue
        middle = (low + high) // 2
        until = min(last, middle - 1)
        tried = cost[first : until + 1] + work[middle] * (
            before[middle + 1] - before[first + 1 : until + 2]
        )
        choice = first + int(np.argmin(tried))
        better[middle], origin[middle] = tried[choice - first], choice
        spans.append((low, middle - 1, first, choice))
        spans.append((middle + 1, high, choice, last))
    return better, origin


@dataclass(frozen=True, slots=True)
class _Label:
    memory: float
    cost: float
    cuts: Cuts


def best_cuts_within(line: Line, k: int, max_bytes: float) -> Bounded | None:
    """At most `k` profiles with least work whose memory adds up to `max_bytes` at most.

    None when not even one profile at the largest size fits.
    """
    last = len(line.weights) - 1
    spare = max_bytes - line.memory[last]  # the last profile is in every plan
    if spare < 0:
        return None
    before = np.concatenate([[0.0], np.cumsum(line.weights)])
    best = _Label(line.memory[last], line.work[last] * before[-1], (last,))
    layer = [
        [_Label(line.memory[j], line.work[j] * before[j + 1], (j,))]
        if j < last and line.memory[j] <= spare else []
        for j in range(last)
    ]  # fmt: skip
    left = MAX_LABELS
    for _ in range(1, min(k, last + 1)):
        ends = _extended(layer, last, max_bytes, line, before)
        best = min([best, *ends], key=lambda label: (label.cost, len(label.cuts), label.cuts))
        left -= sum(map(len, layer)) * last
        if left < 0:
            return Bounded(best.cuts, proven=False)
        layer = [_extended(layer, j, spare, line, before) for j in range(last)]
    return Bounded(best.cuts, proven=True)


def _extended(
    layer: list[list[_Label]], end: int, room: float, line: Line, before: Amounts
) -> list[_Label]:
    """The Pareto front of the layer's labels with a profile at `end` after them."""
    grown = sorted(
        (
            _Label(
                label.memory + line.memory[end],
                label.cost + line.work[end] * (before[end + 1] - before[start + 1]),
                (*label.cuts, end),
            )
            for start in range(end)
            for label in layer[start]
            if label.memory + line.memory[end] <= room
        ),
        key=lambda label: (label.memory, label.cost, label.cuts),
    )
    front: list[_Label] = []
    for label in grown:
        if not front or label.cost < front[-1].cost:
            front.append(label)
    return front
