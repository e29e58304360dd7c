"""A window of data, as drift sees it: scalar descriptors and an embedding per modality."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from validators.contracts.dataset import Dataset
from validators.contracts.errors import BadInput, Refused

MAX_WINDOW_BYTES = 1024 * 1024 * 1024
_DESCRIPTOR, _EMBEDDING = "descriptor/", "embedding/"

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class DriftWindow:
    """Descriptors `{name: [n]}` (each of its own length) and embeddings `{modality: [N, D]}`."""

    descriptors: Mapping[str, Vector] = field(default_factory=dict)
    embeddings: Mapping[str, Matrix] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, values in self.descriptors.items():
            _require(name, values, rank=1)
        for name, vectors in self.embeddings.items():
            _require(name, vectors, rank=2)


def descriptors_of(dataset: Dataset) -> dict[str, Vector]:
    """Every measure as `image.brightness` and the like, and `presence.<modality>` as 0 or 1."""
    modalities = sorted({media.modality for sample in dataset.samples for media in sample.media})
    gathered: dict[str, list[float]] = defaultdict(list)
    for sample in dataset.samples:
        for modality in modalities:
            media = sample.find(modality)
            gathered[f"presence.{modality}"].append(float(media is not None))
            for name, value in media.measures if media else ():
                gathered[f"{modality}.{name}"].append(value)
    return {name: np.asarray(values, dtype=np.float64) for name, values in gathered.items()}


def write_window(window: DriftWindow) -> bytes:
    """The window as safetensors bytes; the same window always gives the same bytes."""
    tensors: dict[str, npt.NDArray[Any]] = {}
    for name in sorted(window.descriptors):
        tensors[_DESCRIPTOR + name] = np.ascontiguousarray(window.descriptors[name], np.float64)
    for name in sorted(window.embeddings):
        tensors[_EMBEDDING + name] = np.ascontiguousarray(window.embeddings[name], np.float32)
    return bytes(save(tensors))


def read_window(data: bytes) -> DriftWindow:
    """The window that `write_window` wrote.

    Raises:
        Refused: not safetensors, too large, or holding anything that is no window.
    """
    if len(data) > MAX_WINDOW_BYTES:
        raise Refused(f"a drift window of {len(data)} bytes is too large")
    try:
        tensors = load(data)
    except (SafetensorError, ValueError, KeyError) as error:
        raise Refused(
            "not a drift window", remedy="Measure the window again; it was damaged."
        ) from error
    descriptors, embeddings = {}, {}
    for name, values in tensors.items():
        if name.startswith(_DESCRIPTOR) and values.dtype == np.float64:
            descriptors[name.removeprefix(_DESCRIPTOR)] = values
        elif name.startswith(_EMBEDDING) and values.dtype == np.float32:
            embeddings[name.removeprefix(_EMBEDDING)] = values
        else:
            raise Refused("a drift window holds a tensor of another kind", where=name[:80])
    try:
        return DriftWindow(descriptors, embeddings)
    except BadInput as error:
        raise Refused("a drift window holds unusable numbers", where=error.where) from error


def _require(name: str, values: npt.NDArray[Any], *, rank: int) -> None:
    if values.ndim != rank or not np.isfinite(values).all():
        raise BadInput(
            f"a drift window's {name} is not a finite array of rank {rank}",
            where=name,
            remedy="Leave out what was not measured; never send NaN.",
        )
