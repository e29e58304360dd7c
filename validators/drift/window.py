"""A window of data, as drift sees it: rows with descriptors, categories, embeddings and lineage.

A recorder keeps `rows` of the `seen` items of a time span. Every column has one entry a row, absent
where the row has none; an embedding has the rows of its vectors, so that two modalities of one row
form a pair. `window_file` writes and reads it, the digest of those bytes is its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from validators.contracts.errors import BadInput
from validators.drift.columns import (
    Categories,
    Codes,
    Embedded,
    Rows,
    Scalars,
    as_rows,
)

Times = npt.NDArray[np.int64]

FORMAT = 2
MAX_ROWS = 1_000_000
MAX_COLUMNS = 512
"""Of each kind."""
MAX_NAME = 128
MAX_TAG_WORDS = 64
"""Slices of one lineage tag; what is rarer is one slice together."""


@dataclass(frozen=True, slots=True)
class DriftWindow:
    """`rows` kept of `seen` items.

    `descriptors`, `categories` and `tags` (lineage: sensor, lighting, source) are columns of `rows`
    entries by name; `embeddings` are by modality. `times_ms` [rows] is when each item was recorded
    and `recordings` [rows] numbers what it is part of (a video, a session): rows of one recording
    are alike and are moved together by the tests. `format` 1 has no rows in common between its
    columns and no origins.
    """

    rows: int
    descriptors: Mapping[str, Scalars] = field(default_factory=dict)
    categories: Mapping[str, Categories] = field(default_factory=dict)
    embeddings: Mapping[str, Embedded] = field(default_factory=dict)
    tags: Mapping[str, Categories] = field(default_factory=dict)
    times_ms: Times | None = None
    recordings: Codes | None = None
    from_ms: int | None = None
    until_ms: int | None = None
    seen: int = -1  # -1: as many as were kept
    format: int = FORMAT

    def __post_init__(self) -> None:
        if self.seen < 0:
            object.__setattr__(self, "seen", self.rows)
        if not 0 <= self.rows <= MAX_ROWS or self.rows > self.seen:
            raise BadInput(
                f"a drift window keeps at most {MAX_ROWS} rows, and no more than were seen",
                remedy="Record a sample of the rows.",
            )
        for kind, columns in self.columns().items():
            if len(columns) > MAX_COLUMNS:
                raise BadInput(f"a drift window has at most {MAX_COLUMNS} {kind}")
            for name, column in columns.items():
                self._check(kind, name, column)
        for name, values in (("times_ms", self.times_ms), ("recordings", self.recordings)):
            if values is not None and values.shape != (self.rows,):
                raise BadInput(f"a drift window has one entry of {name} a row", where=name)

    def columns(self) -> dict[str, Mapping[str, Scalars | Categories | Embedded]]:
        """All columns by kind."""
        return {
            "descriptors": self.descriptors, "categories": self.categories,
            "embeddings": self.embeddings, "tags": self.tags,
        }  # fmt: skip

    @property
    def share(self) -> float:
        """The part of what was seen that was kept."""
        return self.rows / self.seen if self.seen else 1.0

    def _check(self, kind: str, name: str, column: Scalars | Categories | Embedded) -> None:
        if not 0 < len(name) <= MAX_NAME:
            raise BadInput(f"a name of {kind} has 1 to {MAX_NAME} characters", where=name[:80])
        if isinstance(column, Embedded):
            fits = not len(column) or int(column.rows[-1]) < self.rows
        else:
            fits = len(column) == self.rows
        if not fits:
            raise BadInput(
                f"{kind}.{name} does not fit a drift window of {self.rows} rows", where=name,
                remedy="Give each column one entry a row, absent where nothing was measured.",
            )  # fmt: skip


def take(window: DriftWindow, rows: npt.ArrayLike) -> DriftWindow:
    """Some rows of a window, in increasing order; `seen` stays what the recorder saw."""
    return ordered(window, np.unique(as_rows(rows)))


def ordered(window: DriftWindow, chosen: Rows) -> DriftWindow:
    """These rows of a window (distinct ones), in this order."""

    def some(columns: Mapping[str, Any]) -> dict[str, Any]:
        return {name: column.take(chosen) for name, column in columns.items()}

    return DriftWindow(
        rows=len(chosen),
        descriptors=some(window.descriptors),
        categories=some(window.categories),
        embeddings=some(window.embeddings),
        tags=some(window.tags),
        times_ms=None if window.times_ms is None else window.times_ms[chosen],
        recordings=None if window.recordings is None else window.recordings[chosen],
        from_ms=window.from_ms,
        until_ms=window.until_ms,
        seen=window.seen,
        format=window.format,
    )


def sample(window: DriftWindow, limit: int, seed: int = 0) -> DriftWindow:
    """At most `limit` rows, drawn by chance."""
    if window.rows <= limit:
        return window
    return take(window, np.random.default_rng(seed).permutation(window.rows)[:limit])
