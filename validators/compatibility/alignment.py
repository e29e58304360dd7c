"""Which layer of the old version is which of the new one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from validators.compatibility.layers import LayerStatistics

Key = tuple[str, str]
"""A layer's name and its kind."""

NAMED_SHARE = 0.5
"""Names are trusted where this share of the shorter side has a namesake of its kind."""


def align_layers(
    old: Sequence[LayerStatistics], new: Sequence[LayerStatistics]
) -> tuple[tuple[LayerStatistics, LayerStatistics], ...]:
    """Pairs of layers, in the order of the new version's execution."""
    pairs = align([(a.name, a.kind) for a in old], [(b.name, b.kind) for b in new])
    return tuple((old[first], new[second]) for first, second in pairs)


def align(old: Sequence[Key], new: Sequence[Key]) -> tuple[tuple[int, int], ...]:
    """Places of partners: by name and kind; what is left, or all where names do not hold, by kind
    in order, as a longest common subsequence. Each place has one partner at most; sorted by `new`.
    """
    places = {key: place for place, key in enumerate(old)}
    named = [(places[key], place) for place, key in enumerate(new) if key in places]
    if len(named) < NAMED_SHARE * min(len(old), len(new)):
        named = []
    taken_old, taken_new = {a for a, _ in named}, {b for _, b in named}
    rest_old = [place for place in range(len(old)) if place not in taken_old]
    rest_new = [place for place in range(len(new)) if place not in taken_new]
    common = common_subsequence([old[a][1] for a in rest_old], [new[b][1] for b in rest_new])
    found = named + [(rest_old[a], rest_new[b]) for a, b in common]
    return tuple(sorted(found, key=lambda pair: pair[1]))


def common_subsequence(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The places of a longest common subsequence, in order.

    The table is filled row by row: within a row the recurrence is a running maximum.
    """
    if not old or not new:
        return []
    codes = {word: code for code, word in enumerate({*old, *new})}
    columns = np.array([codes[word] for word in new])
    table = np.zeros((len(old) + 1, len(new) + 1), np.uint16)
    for row, word in enumerate(old, start=1):
        above = table[row - 1]
        met = above[:-1] + (columns == codes[word])
        table[row, 1:] = np.maximum.accumulate(np.maximum(above[1:], met))
    pairs, row, column = [], len(old), len(new)
    while row and column:
        if old[row - 1] == new[column - 1] and table[row, column] == table[row - 1, column - 1] + 1:
            row, column = row - 1, column - 1
            pairs.append((row, column))
        elif table[row - 1, column] >= table[row, column - 1]:
            row -= 1
        else:
            column -= 1
    return pairs[::-1]
