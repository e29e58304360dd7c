"""Runs two versions of an encoder, or one alone, and measures what its outputs do.

Only embeddings are kept over all items; of every other output a few figures per item, so that
memory does not grow with the size of feature maps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from services.compatibility.contracts import list_differences
from services.compatibility.geometry import (
    Matrix,
    count_found,
    distance_between,
    map_by_ridge,
    measure_spread,
    neighbour_overlap,
    neighbours_of,
    paired_cosines,
    unit_rows,
)
from validators.compatibility.measured import (
    CompatibilityMeasurement,
    Geometry,
    HalfCheck,
    OutputDrift,
    SelfCheck,
)
from validators.contracts.encoder import EncoderContract
from validators.contracts.errors import BadInput, TooLarge
from validators.contracts.ports import RunningEngine, Tensors
from validators.contracts.tensors import Meaning, TensorSpec

Array = npt.NDArray[Any]

MAX_ITEMS = 4096


@dataclass(frozen=True, slots=True)
class EncoderVersion:
    """A version by its contract, and the engine that would serve it (its precision included)."""

    contract: EncoderContract
    engine: RunningEngine


@dataclass(slots=True)
class _Output:
    """What is gathered of one output while the items run through."""

    spec: TensorSpec
    new_spec: TensorSpec
    linf: list[float] = field(default_factory=list)
    cosines: list[float] = field(default_factory=list)
    old_bad: int = 0
    old_size: int = 0
    new_bad: int = 0
    new_size: int = 0
    old_rows: list[Array] = field(default_factory=list)
    new_rows: list[Array] = field(default_factory=list)

    def add(self, old: Array, new: Array) -> None:
        self.old_bad += int(np.count_nonzero(~np.isfinite(old)))
        self.new_bad += int(np.count_nonzero(~np.isfinite(new)))
        self.old_size += old.size
        self.new_size += new.size
        if np.isfinite(old).all() and np.isfinite(new).all():
            self._compare(old.astype(np.float64), new.astype(np.float64))

    def _compare(self, old: Array, new: Array) -> None:
        before, after = float(np.abs(old).max()), float(np.abs(new).max())
        if before > 0:
            self.linf.append(abs(after - before) / before)
        if old.shape == new.shape:
            self.cosines.append(float(paired_cosines(old.reshape(1, -1), new.reshape(1, -1))[0]))
        if self.spec.meaning is Meaning.GLOBAL_EMBEDDING and _are_rows(old, new):
            self.old_rows.append(old)
            self.new_rows.append(new)

    def drift(self) -> OutputDrift:
        return OutputDrift(
            self.spec.name,
            self.spec.meaning,
            float(np.mean(self.linf)) if self.linf else None,
            float(np.mean(self.cosines)) if self.cosines else None,
            self.old_bad / max(self.old_size, 1),
            self.new_bad / max(self.new_size, 1),
        )


def compare_encoders(
    old: EncoderVersion, new: EncoderVersion, feeds: Sequence[tuple[Tensors, Tensors]]
) -> CompatibilityMeasurement:
    """Run both versions on the same items.

    Args:
        feeds: an item each, as (input of the old version, input of the new one): the same raw
            input through each version's own preprocessing, a batch of one.

    Raises:
        BadInput: an input that does not fit its engine, or another encoder altogether.
        TooLarge: more than MAX_ITEMS items.
    """
    if old.contract.name != new.contract.name:
        raise BadInput(
            "two different encoders are no versions of each other",
            where=f"{old.contract.name}, {new.contract.name}",
            remedy="Compare versions of one encoder.",
        )
    _check_count(len(feeds))
    kept = {spec.name: spec for spec in new.contract.outputs}
    gathered = [
        _Output(spec, kept[spec.name]) for spec in old.contract.outputs if spec.name in kept
    ]
    for old_feed, new_feed in feeds:
        before, after = old.engine.run(old_feed), new.engine.run(new_feed)
        for output in gathered:
            output.add(before[output.spec.name], after[output.spec.name])
    return CompatibilityMeasurement(
        old.contract.name,
        old.contract.version,
        new.contract.version,
        len(feeds),
        tuple(output.drift() for output in gathered),
        tuple(_geometry(output) for output in gathered if output.new_rows),
        list_differences(
            old.contract,
            new.contract,
            old.engine.manifest.spec.precision,
            new.engine.manifest.spec.precision,
        ),
        tuple(spec.name for spec in old.contract.outputs if spec.name not in kept),
    )


def check_alone(version: EncoderVersion, feeds: Iterable[Tensors]) -> SelfCheck:
    """Run a version that replaces nothing on its own data, and look at two halves of that.

    Raises:
        BadInput: an input that does not fit its engine.  TooLarge: more than MAX_ITEMS items.
    """
    rows: dict[str, list[Array]] = {spec.name: [] for spec in version.contract.outputs}
    embeddings = [
        spec.name for spec in version.contract.outputs if spec.meaning is Meaning.GLOBAL_EMBEDDING
    ]
    items, nonfinite = 0, 0.0
    for feed in feeds:
        items += 1
        _check_count(items)
        for name, value in version.engine.run(feed).items():
            bad = float(np.count_nonzero(~np.isfinite(value)) / max(value.size, 1))
            nonfinite = max(nonfinite, bad)
            if name in embeddings and bad == 0:
                rows[name].append(value)
    halves = tuple(
        _halves(name, np.concatenate(rows[name])) for name in embeddings if len(rows[name]) >= 2
    )
    contract = version.contract
    return SelfCheck(contract.name, contract.version, items, nonfinite, halves)


def _geometry(output: _Output) -> Geometry:
    old = np.concatenate(output.old_rows).astype(np.float64)
    new = np.concatenate(output.new_rows).astype(np.float64)
    same_dim = old.shape[1] == new.shape[1]
    neighbours = neighbours_of(len(old))
    hits, cosine, held_out = _through_a_map(old, new)
    return Geometry(
        output.spec.name,
        output.spec.space == output.new_spec.space,
        old.shape[1],
        new.shape[1],
        len(old),
        float(paired_cosines(new, old).mean()) if same_dim else None,
        count_found(new, old) if same_dim else None,
        neighbours,
        neighbour_overlap(old, new, neighbours),
        held_out,
        hits,
        cosine,
        measure_spread(new),
    )


def _are_rows(old: Array, new: Array) -> bool:
    """Vectors of the same items: [B, D] each, dimensions may differ."""
    return old.ndim == new.ndim == 2 and len(old) == len(new)


def _through_a_map(old: Matrix, new: Matrix) -> tuple[int, float, int]:
    """(found, mean cosine, how many) of the odd items, by a map learned on the even ones."""
    old, new = unit_rows(old), unit_rows(new)
    if len(old) < 4:
        return 0, 0.0, 0
    mapped = map_by_ridge(new[::2], old[::2], new[1::2])
    held_out = old[1::2]
    return (
        count_found(mapped, held_out),
        float(paired_cosines(mapped, held_out).mean()),
        len(held_out),
    )


def _halves(name: str, vectors: Array) -> HalfCheck:
    first, second = vectors[::2].astype(np.float64), vectors[1::2].astype(np.float64)
    spreads = measure_spread(first), measure_spread(second)
    within = (spreads[0].distance_mean + spreads[1].distance_mean) / 2
    across = distance_between(first, second)
    return HalfCheck(name, *spreads, across / within if within > 0 else 0.0)


def _check_count(items: int) -> None:
    if items > MAX_ITEMS:
        raise TooLarge(
            f"the compatibility gate compares at most {MAX_ITEMS} items",
            remedy="Take a sample of the data.",
        )
