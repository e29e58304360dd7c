"""Windows of several times or machines as one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TypeVar

import numpy as np

from validators.contracts.digest import Digest
from validators.contracts.errors import BadInput, Refused
from validators.contracts.origin import require_mix
from validators.drift.columns import (
    ABSENT,
    MAX_VOCABULARY,
    Categories,
    Codes,
    Embedded,
    Scalars,
    joined_vocabulary,
)
from validators.drift.window import FORMAT, MAX_ROWS, MAX_TAG_WORDS, DriftWindow, Times, sample

Siblings = Collection[frozenset[Digest]]
Column = TypeVar("Column", Scalars, Categories, Embedded)


def concatenate(
    windows: Sequence[DriftWindow],
    *,
    maximum_rows: int = MAX_ROWS,
    siblings: Siblings = (),
    seed: int = 0,
) -> DriftWindow:
    """One window of all rows, in the order given; what a window has not got is absent in its rows.

    Where the windows kept different shares of what they saw, rows of the fuller ones are drawn by
    chance, so that every item that was seen counts alike; likewise beyond `maximum_rows`.

    Raises:
        Refused: vectors of two encoder versions, or of engines that are no `siblings`, would mix.
        BadInput: nothing to join.
    """
    if not windows:
        raise BadInput("no drift window to join", remedy="Give one at least.")
    if any(window.format != FORMAT for window in windows):
        raise Refused(
            "a drift window of the first format cannot be joined: its vectors have no origin",
            remedy="Record it again.",
        )
    return stack(_drawn(windows, maximum_rows, seed), siblings, sum(item.seen for item in windows))


def stack(parts: Sequence[DriftWindow], siblings: Siblings, seen: int) -> DriftWindow:
    """All rows of all parts, which are of the present format, one below the other."""
    starts = [0, *accumulate(part.rows for part in parts)]
    return DriftWindow(
        rows=starts[-1],
        descriptors=_join([part.descriptors for part in parts], lambda _, c: _scalars(c, parts)),
        categories=_join(
            [part.categories for part in parts], lambda _, c: _categories(c, parts, MAX_VOCABULARY)
        ),
        tags=_join(
            [part.tags for part in parts], lambda _, c: _categories(c, parts, MAX_TAG_WORDS)
        ),
        embeddings=_join(
            [part.embeddings for part in parts],
            lambda name, c: _embedded(name, c, starts, siblings),
        ),
        times_ms=_times(parts),
        recordings=_recordings(parts),
        from_ms=min(_known(part.from_ms for part in parts), default=None),
        until_ms=max(_known(part.until_ms for part in parts), default=None),
        seen=seen,
    )


def _drawn(windows: Sequence[DriftWindow], maximum: int, seed: int) -> list[DriftWindow]:
    filled = [window for window in windows if window.rows]
    seen = sum(window.seen for window in filled)
    share = min([maximum / max(seen, 1), *(window.share for window in filled)])
    counts = [int(share * window.seen + 1e-9) for window in windows]
    return [
        sample(window, count, seed + place)
        for place, (window, count) in enumerate(zip(windows, counts, strict=True))
    ]


def _join(
    parts: Sequence[Mapping[str, Column]],
    joined: Callable[[str, list[Column | None]], Column],
) -> dict[str, Column]:
    names = sorted({name for part in parts for name in part})
    return {name: joined(name, [part.get(name) for part in parts]) for name in names}


def _scalars(columns: Sequence[Scalars | None], parts: Sequence[DriftWindow]) -> Scalars:
    whole = [
        column or Scalars(np.zeros(part.rows), np.zeros(part.rows, np.bool_))
        for column, part in zip(columns, parts, strict=True)
    ]
    return Scalars(
        np.concatenate([column.values for column in whole]),
        np.concatenate([column.present for column in whole]),
    )


def _categories(
    columns: Sequence[Categories | None], parts: Sequence[DriftWindow], limit: int
) -> Categories:
    vocabulary = joined_vocabulary((column for column in columns if column is not None), limit)
    codes = [
        np.full(part.rows, ABSENT, np.int32) if column is None else column.recoded(vocabulary)
        for column, part in zip(columns, parts, strict=True)
    ]
    return Categories(np.concatenate(codes), vocabulary)


def _embedded(
    modality: str, columns: Sequence[Embedded | None], starts: Sequence[int], siblings: Siblings
) -> Embedded:
    there = [(column, start) for column, start in zip(columns, starts, strict=False) if column]
    first = there[0][0]
    for column, _ in there:
        require_same(modality, first, column, siblings)
    return Embedded(
        np.concatenate([column.vectors for column, _ in there]),
        np.concatenate([column.rows + start for column, start in there]),
        first.space,
        first.origin,
    )


def comparable(one: Embedded, other: Embedded, siblings: Siblings = ()) -> bool:
    """Whether vectors of these two columns may be compared: see `require_same`."""
    try:
        require_same("", one, other, siblings)
    except Refused:
        return False
    return True


def require_same(modality: str, one: Embedded, other: Embedded, siblings: Siblings = ()) -> None:
    """Raise Refused where vectors of these two columns must not be compared."""
    if one.origin is None or other.origin is None:
        raise Refused("vectors without an origin", where=modality, remedy="Record them again.")
    require_mix(one.origin, other.origin, siblings, where=modality)
    if (one.space, one.vectors.shape[1]) != (other.space, other.vectors.shape[1]):
        raise Refused(
            "vectors of two outputs of an encoder would mix", remedy="Record one output only.",
            where=f"{modality}: {one.space} [{one.vectors.shape[1]}] and "
            f"{other.space} [{other.vectors.shape[1]}]",
        )  # fmt: skip


def _times(parts: Sequence[DriftWindow]) -> Times | None:
    times = [part.times_ms for part in parts if part.times_ms is not None]
    return np.concatenate(times) if len(times) == len(parts) else None


def _recordings(parts: Sequence[DriftWindow]) -> Codes | None:
    """Numbers that no two windows share; rows of a window without them are each on their own."""
    if all(part.recordings is None for part in parts):
        return None
    numbered, free = list[Codes](), 0
    for part in parts:
        given = part.recordings
        own = (
            np.arange(part.rows) if given is None else np.unique(given, return_inverse=True)[1]
        ).astype(np.int32)
        numbered.append((own + free).astype(np.int32))
        free += int(own.max()) + 1 if len(own) else 0
    return np.concatenate(numbered)


def _known(values: Iterable[int | None]) -> list[int]:
    return [value for value in values if value is not None]
