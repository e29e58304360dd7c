"""Runs an ONNX over feeds in ONNX Runtime as it is written, and how large its values got."""

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

SAMPLED = 4096
"""Magnitudes kept of a value on each feed, evenly strided, for its quantile."""

USUAL = 0.9999


@dataclass(frozen=True, slots=True)
class Magnitude:
    """How large a value got; infinities (masks) left out. 0 where it held nothing finite."""

    peak: float
    usual: float  # the USUAL quantile


def run_model(
    model: onnx.ModelProto,
    outputs: Sequence[str],
    feeds: Iterable[Tensors],
    *,
    optimise: bool = False,
) -> list[Arrays]:
    """The outputs on each feed, computed node by node as the graph says, or fused by ONNX Runtime.

    Raises:
        BadInput: ONNX Runtime cannot run it.
    """
    session = _session(serialise(model), optimise=optimise)
    return [
        dict(zip(outputs, session.run(list(outputs), dict(case)), strict=True)) for case in feeds
    ]


def observe(
    model: onnx.ModelProto, values: Sequence[str], feeds: Sequence[Tensors]
) -> dict[str, Magnitude]:
    """The magnitude of each named floating value over all feeds."""
    peaks: dict[str, float] = {}
    kept: dict[str, list[npt.NDArray[np.float32]]] = {}
    for answer in _values(model, values, feeds):
        for name, array in answer.items():
            if array.dtype.kind == "f":
                sizes = np.abs(array).ravel()
                sizes = sizes[np.isfinite(sizes)]
                peaks[name] = max(peaks.get(name, 0.0), float(sizes.max(initial=0.0)))
                stride = max(1, -(-sizes.size // SAMPLED))
                kept.setdefault(name, []).append(sizes[::stride].copy())
    return {name: Magnitude(peak, _usual(kept[name])) for name, peak in peaks.items()}


def _usual(samples: Sequence[npt.NDArray[np.float32]]) -> float:
    pooled = np.concatenate(samples)
    return float(np.quantile(pooled, USUAL)) if pooled.size else 0.0


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


def _session(data: bytes, *, optimise: bool = False) -> Any:
    ort = library()
    try:
        return ort.InferenceSession(data, options(ort, 1, optimise=optimise), providers=PROVIDERS)
    except Exception as error:  # its exceptions share no base but Exception
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise BadInput(
            f"ONNX Runtime cannot run the model: {lines[0][:300]}",
            where="baking",
            remedy="Export the model with operators that ONNX Runtime has.",
        ) from error
