"""Versions of two encoders that meet in a common space: does every item still find its caption?

Each version's vectors come in once; every pair is measured on the same held-out items, so that a
pair and the live one are compared query by query. A version that crashed gives no vectors, and each
of its pairs says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from services.compatibility.geometry import measure_spread
from services.fusion.adapters import fit_ridge, load_adapter, to_unit
from services.fusion.training import DEFAULT_K, MINIMUM_PAIRS
from validators.compatibility.paired import PairMeasurement, PairRetrieval
from validators.compatibility.words import CompatibilitySettings, is_collapsed
from validators.contracts.errors import BadInput
from validators.contracts.pipeline import AdapterEntry

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]

LEAST_TRAINED = 12
"""Pairs below which no map is fitted again."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """One version over all items: its outputs by name, each [N, ...]; or how its child ended."""

    outputs: Mapping[str, Array]
    crashed: str = ""


@dataclass(frozen=True, slots=True)
class Meeting:
    """How two encoders meet.

    `items_map` and `queries_map` are the maps that serve now, with their files; `live` the indices
    of the versions that serve. `captions` tell which items say the same, `held_out` [N] what no map
    was fitted on.
    """

    items_map: tuple[AdapterEntry, bytes | None]
    queries_map: tuple[AdapterEntry, bytes | None]
    live: tuple[int, int]
    captions: Sequence[str]
    held_out: Flags


def measure_meetings(
    meeting: Meeting, items: Sequence[Embedded], queries: Sequence[Embedded]
) -> dict[tuple[int, int], PairMeasurement]:
    """Every version of the items' encoder with every one of the queries'.

    Raises:
        BadInput: the live pair gives no vectors, or nothing is held out.
    """
    if not meeting.held_out.any():
        raise BadInput("no item is held out", where="split", remedy="Tag items split: held-out.")
    live_items, live_queries = items[meeting.live[0]], queries[meeting.live[1]]
    if live_items.crashed or live_queries.crashed:
        raise BadInput(
            "the live pair gives no vectors", where=live_items.crashed or live_queries.crashed,
            remedy="Mend the live versions first.",
        )  # fmt: skip
    reference = _through(meeting, live_items, live_queries)
    return {
        (row, column): _measure(meeting, (row, column), first, second, reference)
        for row, first in enumerate(items)
        for column, second in enumerate(queries)
    }


def _measure(
    meeting: Meeting, place: tuple[int, int], items: Embedded, queries: Embedded, reference: Flags
) -> PairMeasurement:
    names = f"r{place[0]}", f"c{place[1]}"
    if items.crashed or queries.crashed:
        return PairMeasurement(*names, crashed=items.crashed or queries.crashed)
    found = _through(meeting, items, queries)
    again = _refitted(meeting, items, queries)
    if again is None:
        again = found
    held_out = meeting.held_out
    seen = PairRetrieval(
        k=_k_of(int(held_out.sum())),
        queries=int(held_out.sum()),
        chance=_chance(meeting),
        reference_hits=int(reference.sum()),
        hits=int(found.sum()),
        lost=int((reference & ~found).sum()),
        gained=int((found & ~reference).sum()),
        refitted_hits=int(again.sum()),
        refitted_lost=int((reference & ~again).sum()),
        refitted_gained=int((again & ~reference).sum()),
        is_reference=place == meeting.live,
        unusable=max(_unusable(items, meeting.items_map), _unusable(queries, meeting.queries_map)),
    )
    return PairMeasurement(*names, retrieval=seen)


def _through(meeting: Meeting, items: Embedded, queries: Embedded) -> Flags:
    """[held out]: whether each caption finds its item, through the maps that serve now."""
    placed = _mapped(items, meeting.items_map)
    asked = _mapped(queries, meeting.queries_map)
    if placed is None or asked is None or placed.shape[1] != asked.shape[1]:
        return np.zeros(int(meeting.held_out.sum()), bool)
    return _found(meeting, placed[meeting.held_out], asked[meeting.held_out])


def _refitted(meeting: Meeting, items: Embedded, queries: Embedded) -> Flags | None:
    """The same through a map fitted on the training items of this pair; None where none can be."""
    asked = _mapped(queries, meeting.queries_map)
    values = items.outputs.get(meeting.items_map[0].output)
    train = ~meeting.held_out
    if asked is None or values is None or values.ndim != 2 or train.sum() < LEAST_TRAINED:
        return None
    usable = np.isfinite(values).all(1) & np.isfinite(asked).all(1)
    if not usable.all() or (meeting.items_map[0].kind == "conse" and train.sum() < MINIMUM_PAIRS):
        return None
    data = fit_ridge(values[train], asked[train])
    entry = AdapterEntry("ridge", meeting.items_map[0].output, meeting.items_map[0].space)
    placed = load_adapter(entry, data)(values[meeting.held_out])
    return _found(meeting, placed, asked[meeting.held_out])


def _mapped(version: Embedded, through: tuple[AdapterEntry, bytes | None]) -> Array | None:
    """Unit vectors in the common space; None where the map does not take this version's output."""
    entry, data = through
    values = version.outputs.get(entry.output)
    if values is None or not np.isfinite(values).all():
        return None
    try:
        return np.asarray(to_unit(load_adapter(entry, data)(values)))
    except BadInput:  # another width than the map was fitted on
        return None


def _found(meeting: Meeting, items: Array, queries: Array) -> Flags:
    captions = [c for c, use in zip(meeting.captions, meeting.held_out, strict=True) if use]
    same = np.array([[one == other for other in captions] for one in captions])
    scores = queries @ items.T
    best = np.where(same, scores, -np.inf).max(axis=1)
    ahead = ((scores >= best[:, None]) & ~same).sum(axis=1)  # a tie counts against the match
    return np.asarray(ahead < _k_of(len(items)))


def _k_of(items: int) -> int:
    """As in the release's own recall gate (`services.fusion.training`)."""
    return DEFAULT_K if items >= 8 * DEFAULT_K else max(1, items // 8)


def _chance(meeting: Meeting) -> float:
    count = int(meeting.held_out.sum())
    return _k_of(count) / count


def _unusable(version: Embedded, through: tuple[AdapterEntry, bytes | None]) -> int:
    """Items without a usable vector: not finite; or all of them, where all are one."""
    values = version.outputs.get(through[0].output)
    if values is None:
        return 0
    rows = values.reshape(len(values), -1)
    broken = ~np.isfinite(rows).all(axis=1)
    if broken.any():
        return int(broken.sum())
    spread = measure_spread(rows.astype(np.float64))
    return len(rows) if is_collapsed(spread, CompatibilitySettings()) else 0
