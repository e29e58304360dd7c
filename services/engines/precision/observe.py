"""Runs an ONNX over feeds in ONNX Runtime as it is written, and what its values ranged over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from services.engines.backends.onnxruntime.build import PROVIDERS, options
from services.engines.backends.onnxruntime.probe import library
from services.engines.export.graph import serialise
from services.engines.tensors import Arrays
from validators.contracts.errors import BadInput
from validators.contracts.ports import Tensors


@dataclass(frozen=True, slots=True)
class Span:
    """What a value ranged over; infinities (masks) left out. `low > high`: it held none finite."""

    low: float
    high: float

    @property
    def peak(self) -> float:
        return max(abs(self.low), abs(self.high)) if self.low <= self.high else 0.0

    def joined(self, other: Span) -> Span:
        return Span(min(self.low, other.low), max(self.high, other.high))


def run_model(
    model: onnx.ModelProto, outputs: Sequence[str], feeds: Iterable[Tensors]
) -> list[Arrays]:
    """The outputs on each feed, computed node by node as the graph says, nothing fused.

    Raises:
        BadInput: ONNX Runtime cannot run it.
    """
    session = _session(serialise(model))
    return [
        dict(zip(outputs, session.run(list(outputs), dict(case)), strict=True)) for case in feeds
    ]


def observe(
    model: onnx.ModelProto, values: Sequence[str], feeds: Sequence[Tensors]
) -> dict[str, Span]:
    """The span of each named floating value over all feeds; one that is not floating is left out."""
    spans: dict[str, Span] = {}
    for answer in _values(model, values, feeds):
        for name, array in answer.items():
            if array.dtype.kind == "f":
                seen = _span(array)
                spans[name] = spans[name].joined(seen) if name in spans else seen
    return spans


def channel_peaks(
    model: onnx.ModelProto, values: Sequence[str], feeds: Sequence[Tensors]
) -> dict[str, npt.NDArray[np.float32]]:
    """The largest magnitude of each value along its last axis."""
    peaks: dict[str, npt.NDArray[np.float32]] = {}
    for answer in _values(model, values, feeds):
        for name, array in answer.items():
            seen = np.abs(array).reshape(-1, array.shape[-1]).max(axis=0)
            peaks[name] = np.maximum(peaks[name], seen) if name in peaks else seen
    return peaks


def _values(
    model: onnx.ModelProto, values: Sequence[str], feeds: Sequence[Tensors]
) -> Iterator[Arrays]:
    """The named values on each feed; inputs of the graph come from the feeds themselves."""
    given = {item.name for item in model.graph.input}
    shown = {item.name for item in model.graph.output}
    made = {name for node in model.graph.node for name in node.output}
    wanted = [name for name in dict.fromkeys(values) if name in made]
    widened = onnx.ModelProto()
    widened.CopyFrom(model)
    widened.graph.output.extend(
        onnx.ValueInfoProto(name=name) for name in wanted if name not in shown
    )
    session = _session(serialise(widened))
    for case in feeds:
        answer = dict(zip(wanted, session.run(wanted, dict(case)), strict=True))
        yield answer | {name: case[name] for name in values if name in given}


def _span(array: Any) -> Span:
    finite = array[np.isfinite(array)] if not np.isfinite(array).all() else array
    if finite.size == 0:
        return Span(np.inf, -np.inf)
    return Span(float(finite.min()), float(finite.max()))


def _session(data: bytes) -> Any:
    ort = library()
    try:
        return ort.InferenceSession(data, options(ort, 1, optimise=False), providers=PROVIDERS)
    except Exception as error:  # its exceptions share no base but Exception
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise BadInput(
            f"ONNX Runtime cannot run the model: {lines[0][:300]}",
            where="baking",
            remedy="Export the model with operators that ONNX Runtime has.",
        ) from error
