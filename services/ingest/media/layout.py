"""Where text stands on a page, and in which order people read it. Pure.

Reading order is a recursive XY-cut (Nagy and Seth 1984): a page is cut at white columns; where
there is none, into bands at white rows, of which as many as share a white column are read together,
column by column; the rest from the top down, in a band from the left.
"""

from __future__ import annotations

import bisect
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

COLUMN_GAP = 1.0
"""A white column is at least so wide, in median heights of a line."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle on a page, from its top left corner, 0..1 of the page's width and height."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Block:
    """One line of text. `source` is "ocr" or "text-layer"; `page` and `order` count from 1.

    `confidence` is the recogniser's, 0..1; 1 for a text layer, which knows its characters.
    """

    page: int
    order: int
    box: Box
    source: str
    confidence: float
    text: str

    @property
    def place(self) -> str:
        """As an item's `place`; `read_place` reads it."""
        box = ",".join(
            f"{value:.4f}"
            for value in (self.box.left, self.box.top, self.box.right, self.box.bottom)
        )
        return f"page {self.page} block {self.order} box {box} {self.source} {self.confidence:.2f}"


_PLACE = re.compile(
    r"page (\d+) block (\d+) box ([\d.]+),([\d.]+),([\d.]+),([\d.]+) (ocr|text-layer) ([\d.]+)"
)


def read_place(place: str, text: str) -> Block:
    """The block of an item. Raises: ValueError for what `Block.place` did not write."""
    found = _PLACE.fullmatch(place)
    if found is None:
        raise ValueError("not the place of a block")
    page, order, left, top, right, bottom, source, confidence = found.groups()
    box = Box(float(left), float(top), float(right), float(bottom))
    return Block(int(page), int(order), box, source, float(confidence), text)


def turn_back(box: Box, quarter_turns: int) -> Box:
    """A box of a page that was turned counterclockwise, on the page as it was before."""
    for _ in range(quarter_turns % 4):
        box = Box(1 - box.bottom, box.left, 1 - box.top, box.right)
    return box


def reading_order(boxes: Sequence[Box], aspect: float = 1.0) -> list[int]:
    """Places in `boxes` in reading order. `aspect` is the page's height over its width."""
    if not boxes:
        return []
    gap = COLUMN_GAP * aspect * statistics.median(box.bottom - box.top for box in boxes)
    return _order(boxes, list(range(len(boxes))), gap)


def _order(boxes: Sequence[Box], chosen: list[int], gap: float) -> list[int]:
    columns = _cut(chosen, [(boxes[at].left, boxes[at].right) for at in chosen], gap)
    if len(columns) > 1:
        return [at for column in columns for at in _order(boxes, column, gap)]
    bands = _cut(chosen, [(boxes[at].top, boxes[at].bottom) for at in chosen], 0.0)
    ordered = []
    for group in _grouped(boxes, bands, gap):
        together = [at for band in group for at in band]
        # A single band was cut at its columns already, or has none.
        ordered += _order(boxes, together, gap) if len(group) > 1 else _row(boxes, together)
    return ordered


def _cut(chosen: list[int], spans: list[tuple[float, float]], gap: float) -> list[list[int]]:
    """`chosen`, whose spans are given, in groups between which there is white."""
    parts = _merge(spans, gap)
    starts = [start for start, _ in parts]
    groups: list[list[int]] = [[] for _ in parts]
    for at, (start, _) in zip(chosen, spans, strict=True):
        groups[bisect.bisect_right(starts, start) - 1].append(at)
    return groups


def _grouped(boxes: Sequence[Box], bands: list[list[int]], gap: float) -> list[list[list[int]]]:
    """Bands from the top down; neighbours that share a white column are in one group."""
    groups: list[list[list[int]]] = []
    spans: list[tuple[float, float]] = []
    for band in bands:
        own = _merge([(boxes[at].left, boxes[at].right) for at in band], gap)
        shared = _merge([*spans, *own], gap)
        if groups and len(shared) > 1 and len(own) > 1 and len(spans) > 1:
            groups[-1].append(band)
            spans = shared
        else:
            groups.append([band])
            spans = own
    return groups


def _row(boxes: Sequence[Box], chosen: list[int]) -> list[int]:
    return sorted(chosen, key=lambda at: (boxes[at].left, boxes[at].top))


def _merge(spans: list[tuple[float, float]], gap: float) -> list[tuple[float, float]]:
    """Spans joined where less than `gap` is between them."""
    merged: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if merged and start - merged[-1][1] < max(gap, 1e-9):
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
