"""A reported figure for 4-bit weights, taken apart: what follows from it and what does not. Pure.

The report: "4-bit weights in 64-byte transactions: 31.25 % useful bytes and 0.39 times the
throughput of fp16". No layout, no kernel and no hardware are stated with it.

*31.25 % follows from a known layout.* A block of 32 values in 16 bytes with a 2-byte scale and a
2-byte minimum is 20 bytes (GGML's Q4_1; also 16 bytes and one 4-byte scale). One such block for
each 64-byte transaction is 20/64 = 31.25 %, exactly: blocks padded to 64 bytes and streamed, or
padded to 16 or 32 and each read alone. Packed blocks read alone straddle lines: 1.25 lines a block,
25 %. `matching_useful` lists every layout of the search that gives 31.25 %.

*0.39 does not follow from it.* With `bandwidth`'s identity, throughput over fp16 = 2·u / H. The
same layout has u = 0.3125 and H = 20/32 = 0.625 bytes a weight: 2·0.3125/0.625 = 1.0. A 64-byte
line for 32 weights is 2 bytes a weight, which is what fp16 moves: the padding eats the whole gain
and no more. Read the other way, 0.39 with u = 0.3125 needs H = 1.6 bytes a weight: 1.1 bytes of
metadata for half a byte of value (`held_for`). No format of 4-bit weights does that; with the
metadata of any block of 32 or more, memory alone gives between 1.0 and 1.25 (`throughput_range`).
A baseline of fp16 that wastes lines of its own only moves the ratio further up. Of the layouts of
`search_layouts` none gives both figures, and none gives 0.39 at any useful share (`matching_both`).

*What reproduces it.* (a) Another roof: unpacking at 0.39 of the rate at which memory delivers
fp16 weights; a statement about a kernel, which the report does not contain (`unpack_for`). (b) The
useful share counted twice: 4 · 0.3125 is the gain of width times the useful share, 1.25; once more
times 0.3125 is 0.390625 (`counted_twice`). That is arithmetic without a machine behind it: bytes
that were wasted once are not wasted again. Both give the printed figure; neither is claimed to be
what was done.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from validators.precision.bandwidth import (
    CACHE_LINE_BYTES,
    WeightLayout,
    bound_throughput,
    moved_bytes,
    useful_share,
)

REPORTED_USEFUL = 0.3125
REPORTED_THROUGHPUT = 0.39
ROUNDING = 0.005
"""Half of the last digit that was reported."""

FP16 = WeightLayout("fp16", 16)

_BLOCKS = (8, 16, 32, 64, 128, 256)
_METADATA_BYTES = (0.0, 0.5, 1.0, 2.0, 4.0)
_SLOTS = (1, 16, 32, 64, 128)
TRANSACTIONS = (32, 64, 128)


@dataclass(frozen=True, slots=True)
class Explained:
    """A layout under a transaction size, and what follows from it."""

    layout: WeightLayout
    transaction_bytes: int
    useful: float
    throughput: float  # over fp16, both bound by memory


def search_layouts(transactions: tuple[int, ...] = TRANSACTIONS) -> Iterator[Explained]:
    """Every plausible way to lay 4-bit weights out, with its useful share and throughput."""
    choices = itertools.product(
        _BLOCKS, _METADATA_BYTES, _METADATA_BYTES, _SLOTS, (False, True), (False, True)
    )
    for block, scale, zero, slot, planar, alone in choices:
        if scale == 0 and zero > 0:
            continue  # an offset without a scale is no quantisation
        if planar and slot > 1:
            continue  # arrays of their own are packed
        layout = WeightLayout(
            f"4-bit, block {block}, scale {scale:g} B, zero {zero:g} B, slot {slot} B"
            f"{', planar' if planar else ''}{', read alone' if alone else ''}",
            4, block, scale, zero, slot, planar, alone,
        )  # fmt: skip
        for size in transactions if alone else transactions[:1]:
            yield Explained(
                layout, size, useful_share(layout, size), bound_throughput(layout, FP16, size)
            )


def matching_useful() -> tuple[Explained, ...]:
    """The layouts that are exactly 31.25 % useful under 64-byte transactions."""
    found = (item for item in search_layouts((CACHE_LINE_BYTES,)))
    return tuple(item for item in found if abs(item.useful - REPORTED_USEFUL) < 1e-12)


def matching_both() -> tuple[Explained, ...]:
    """The layouts, under any transaction size, that give both reported figures."""
    return tuple(
        item
        for item in search_layouts()
        if abs(item.useful - REPORTED_USEFUL) < 1e-12
        and abs(item.throughput - REPORTED_THROUGHPUT) <= ROUNDING
    )


def held_for(useful: float, throughput: float) -> float:
    """Bytes a weight must hold, metadata included, for both figures to be of one layout."""
    return 2 * useful / throughput


def throughput_range(useful: float, most_metadata: float) -> tuple[float, float]:
    """Throughput over fp16 for 4-bit weights with up to so many metadata bytes a weight."""
    return 2 * useful / (0.5 + most_metadata), 2 * useful / 0.5


def unpack_for(throughput: float, bytes_per_s: float) -> float:
    """Weights a second at which unpacking would hold a kernel to this throughput over fp16."""
    return throughput * bytes_per_s / moved_bytes(FP16)


def counted_twice(useful: float) -> float:
    """Gain of width, times the useful share, times the useful share again."""
    return 16 / 4 * useful * useful
