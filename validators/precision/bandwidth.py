"""What moving and multiplying weights must cost: a roofline for narrow weights. Pure.

Derivation. A layer holds n·k weights and is applied to a batch of b rows. Memory hands out whole
transactions of T bytes (a cache line of 64, a GPU's sector of 32), so what counts is not what a
format holds but what its layout makes memory move:

    held     H = bits/8 + (scale + zero)/block                     bytes a weight, metadata included
    moved    M = transactions touched · T / weights read           bytes a weight
    useful   u = H / M

Weights that lie behind each other and are read through once share their transactions: M is the
stride of a block over its weights, which is H unless slots are padded. Blocks that are read alone
(no neighbour's line survives in a cache until it is wanted) pay whole transactions each; M follows
from the places where blocks fall, averaged over one period of stride and T (`moved_bytes`).

A pass takes the longer of its two roofs (Williams, Waterman & Patterson 2009):

    t_memory  = n·k·M / B + b·(n + k)·A / B        B: bytes/s, A: bytes of one activation
    t_compute = n·k·(2·b / P + D / Q)              P: flop/s, D: operations to unpack one weight,
                                                   Q: such operations/s; unpacked once for all rows
    t         = max(t_memory, t_compute)

For one row and large matrices activations vanish and the ratio to 16-bit weights, streamed, is

    throughput(narrow) / throughput(fp16) = 2 / M = 2·u / H        while memory is the roof

so a useful share says nothing about throughput without the metadata it counts as useful; both
come from one layout. From some batch on, t_compute is the roof for every width, narrow weights
gain nothing there, and D makes them lose: `crossover_batch`.

What the model leaves out: latency of dependent loads, memory-level parallelism, caches between the
level that B was measured at and the registers, instruction issue. It is a bound on what a kernel
can reach, not a forecast of what a given kernel does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from validators.contracts.engine import Precision

CACHE_LINE_BYTES = 64
SECTOR_BYTES = 32


@dataclass(frozen=True, slots=True)
class WeightLayout:
    """How weights of one width lie in memory.

    `block` weights share one scale and zero point. `planar`: values, scales and zero points lie in
    arrays of their own; else each block is followed by its own. `slot_bytes` pads each block to a
    multiple of it (1: packed). `alone`: every block is read by itself, nothing is shared with its
    neighbour; else blocks are streamed in order.
    """

    name: str
    bits: int
    block: int = 1
    scale_bytes: float = 0.0
    zero_bytes: float = 0.0
    slot_bytes: int = 1
    planar: bool = False
    alone: bool = False

    @property
    def value_bytes(self) -> float:
        """Of one block, without its metadata."""
        return self.block * self.bits / 8

    @property
    def held_bytes(self) -> float:
        """Bytes a weight holds, its share of the metadata included."""
        return (self.value_bytes + self.scale_bytes + self.zero_bytes) / self.block

    def pieces(self) -> tuple[float, ...]:
        """The sizes of what one block consists of, in bytes, each with a place of its own."""
        if not self.planar:
            return (self.value_bytes + self.scale_bytes + self.zero_bytes,)
        parts = (self.value_bytes, self.scale_bytes, self.zero_bytes)
        return tuple(part for part in parts if part)


LAYOUTS: dict[Precision, WeightLayout] = {
    Precision.FP32: WeightLayout("fp32", 32),
    Precision.FP16: WeightLayout("fp16", 16),
    Precision.BF16: WeightLayout("bf16", 16),
    Precision.INT8: WeightLayout("int8, scale a channel", 8),
    Precision.INT4: WeightLayout("int4, fp16 scale a block of 32", 4, block=32, scale_bytes=2),
}
"""As backends here store them, streamed. A channel's scale is lost among thousands of weights."""


def moved_bytes(layout: WeightLayout, transaction_bytes: int = CACHE_LINE_BYTES) -> float:
    """Bytes that memory moves for one weight."""
    strides = [_padded(piece, layout.slot_bytes) for piece in layout.pieces()]
    if not layout.alone:
        return sum(strides) / layout.block
    pieces = zip(layout.pieces(), strides, strict=True)
    lines = sum(_lines(piece, stride, transaction_bytes) for piece, stride in pieces)
    return lines * transaction_bytes / layout.block


def useful_share(layout: WeightLayout, transaction_bytes: int = CACHE_LINE_BYTES) -> float:
    """Bytes that are wanted, values and metadata, over bytes that are moved."""
    return layout.held_bytes / moved_bytes(layout, transaction_bytes)


def bound_throughput(
    layout: WeightLayout, beside: WeightLayout, transaction_bytes: int = CACHE_LINE_BYTES
) -> float:
    """Throughput over that of another layout, both with memory as their roof, one row."""
    return moved_bytes(beside, transaction_bytes) / moved_bytes(layout, transaction_bytes)


def _padded(size: float, slot_bytes: int) -> float:
    return math.ceil(size / slot_bytes) * slot_bytes if slot_bytes > 1 else size


def _lines(size: float, stride: float, transaction_bytes: int) -> float:
    """Transactions touched by one piece of a row of them, on average over where they fall.

    Sizes of half bytes (an odd zero point of 4 bits) are counted in half bytes.
    """
    size2, stride2, line2 = round(2 * size), round(2 * stride), 2 * transaction_bytes
    period = line2 // math.gcd(stride2, line2)
    touched = sum(
        (at * stride2 + size2 - 1) // line2 - (at * stride2) // line2 + 1 for at in range(period)
    )
    return touched / period


UNPACKED: frozenset[Precision] = frozenset({Precision.INT4})
"""Widths that no multiplier takes as they are: each weight is turned into another number first."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One multiplying layer for one item: weights, multiply-adds, activations in and out.

    Where the second operand is computed too (attention) it counts as activations, which grow with
    the batch, and `weights` is 0.
    """

    name: str
    weights: int
    macs: int
    activations: int


@dataclass(frozen=True, slots=True)
class Roofs:
    """What the machine gives, measured in the same run. One thread."""

    bytes_per_s: float
    flops_per_s: tuple[tuple[Precision, float], ...]
    unpack_per_s: float = math.inf  # weights turned into numbers to multiply

    def flops(self, precision: Precision) -> float:
        """The rate in this precision; where it was not measured, fp32's: wider always works.

        What is unpacked first may be multiplied in whatever is fastest.
        """
        known = dict(self.flops_per_s)
        if precision in UNPACKED:
            return max(known.values())
        return known.get(precision, known[Precision.FP32])


ACTIVATION_BYTES: dict[Precision, int] = {
    Precision.FP32: 4,
    Precision.FP16: 2,
    Precision.BF16: 2,
    Precision.INT8: 1,
    Precision.INT4: 4,
}


def predict_ms(layers: Iterable[Layer], precision: Precision, batch: int, roofs: Roofs) -> float:
    """The least time of one pass over the layers, each under its own roof, in milliseconds."""
    return 1e3 * sum(_least_s(layer, precision, batch, roofs) for layer in layers)


def _least_s(layer: Layer, precision: Precision, batch: int, roofs: Roofs) -> float:
    moved = layer.weights * moved_bytes(LAYOUTS[precision])
    moved += batch * layer.activations * ACTIVATION_BYTES[precision]
    compute = 2.0 * batch * layer.macs / roofs.flops(precision)
    if precision in UNPACKED:
        compute += layer.weights / roofs.unpack_per_s
    return max(moved / roofs.bytes_per_s, compute)


def crossover_batch(precision: Precision, roofs: Roofs) -> float:
    """Rows from which a large layer is bound by arithmetic: 2·b/P + D/Q = M/B, solved for b.

    Below it narrower weights pay; above it only faster arithmetic does. 0 where unpacking alone is
    slower than memory.
    """
    memory = moved_bytes(LAYOUTS[precision]) / roofs.bytes_per_s
    unpack = 1 / roofs.unpack_per_s if precision in UNPACKED else 0.0
    return max(0.0, (memory - unpack) * roofs.flops(precision) / 2)
