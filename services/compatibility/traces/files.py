"""A trace as a file between two processes: NumPy's own format, no pickle."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from validators.compatibility.layers import LayerStatistics, Trace
from validators.contracts.digest import canonical_json
from validators.contracts.documents import load
from validators.contracts.engine import Precision


@dataclass(frozen=True, slots=True)
class _Head:
    """A trace without its sketches."""

    runtime: str
    precision: Precision
    computed_in: Precision | None
    items: int
    layers: tuple[LayerStatistics, ...]
    note: str
    wall_s: float


def save_trace(path: Path, trace: Trace) -> None:
    """Write a trace, whole or not at all."""
    head = _Head(
        trace.runtime, trace.precision, trace.computed_in, trace.items, trace.layers, trace.note,
        trace.wall_s,
    )  # fmt: skip
    draft = path.with_suffix(".draft")
    with draft.open("wb") as stream:
        document = np.frombuffer(canonical_json(head), np.uint8)
        np.savez(stream, allow_pickle=False, head=document, sketches=trace.sketches)
    draft.replace(path)


def load_trace(path: Path) -> Trace:
    """Read what `save_trace` wrote.

    Raises:
        Refused: it is no trace of this version.
    """
    with np.load(path, allow_pickle=False) as stored:
        head = load(_Head, stored["head"].tobytes(), where=path.name)
        sketches = stored["sketches"]
    return Trace(
        head.runtime, head.precision, head.computed_in, head.items, head.layers, head.note,
        head.wall_s, sketches,
    )  # fmt: skip
