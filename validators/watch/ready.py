"""Which columns of the recorded windows can be judged: those with samples enough, each by itself.

What few requests have (speech, say) gathers over many windows while the rest is judged; every row
of a column is judged once, and none is passed over. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import numpy as np

from validators.drift.columns import Embedded, Scalars
from validators.drift.window import DriftWindow, take

EMBEDDING = "embedding."
"""Before the modality's name, where columns of all kinds are named together."""

PRESENCE = "presence."
"""Before the modality's name: the category of which rows have it, `yes` or `no`."""


def samples_of(window: DriftWindow) -> dict[str, int]:
    """How many rows each column has a value in: descriptors by name, embeddings as `embedding.x`.

    Columns without any are left out. Categories and tags go with whatever is judged.
    """
    counts = {name: int(column.present.sum()) for name, column in window.descriptors.items()}
    counts |= {EMBEDDING + name: len(column) for name, column in window.embeddings.items()}
    return {name: count for name, count in counts.items() if count}


def modalities_of(window: DriftWindow) -> set[str]:
    """The modalities that any row has, by its presence, its vectors or its measures."""
    there = {
        name.removeprefix(PRESENCE)
        for name, column in window.categories.items()
        if name.startswith(PRESENCE) and "yes" in column.counts()
    }
    return there | {name.removeprefix(EMBEDDING).partition(".")[0] for name in samples_of(window)}


def ready_columns(
    waiting: Iterable[Mapping[str, int]], minimum: int, known: Collection[str]
) -> frozenset[str]:
    """The columns that have `minimum` samples over all windows, of those the reference knows."""
    totals: Counter[str] = Counter()
    for counts in waiting:
        totals.update(counts)
    return frozenset(n for n, total in totals.items() if total >= minimum and n in known)


def only(window: DriftWindow, columns: Collection[str]) -> DriftWindow:
    """The window with no other descriptors and embeddings than these."""
    descriptors: dict[str, Scalars] = {
        name: column for name, column in window.descriptors.items() if name in columns
    }
    embeddings: dict[str, Embedded] = {
        name: column
        for name, column in window.embeddings.items()
        if EMBEDDING + name in columns
    }  # fmt: skip
    return replace(window, descriptors=descriptors, embeddings=embeddings)


def carried(window: DriftWindow, columns: Collection[str]) -> DriftWindow:
    """What of a window waits still: these columns, and the rows that have a value in any of them.

    The rows stand for their share of what was seen, as before.
    """
    cut = only(window, columns)
    rows = np.zeros(window.rows, bool)
    for scalars in cut.descriptors.values():
        rows |= scalars.present
    for column in cut.embeddings.values():
        rows[column.rows] = True
    kept = take(cut, np.flatnonzero(rows))
    return replace(kept, seen=max(kept.rows, round(kept.rows / window.share)))
