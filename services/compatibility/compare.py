"""Runs two versions of an encoder, or one alone, and measures what its outputs do.

Only embeddings are kept over all items; of every other output a few figures per item, so that
memory does not grow with the size of feature maps.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from services.compatibility.contracts import list_differences
from services.compatibility.geometry import distance_between, measure_spread, paired_cosines
from services.compatibility.spaces import Cloud, Embedding, measure_geometry, repeated_inputs
from services.engines.tensors import digest_feeds
from validators.compatibility.measured import (
    CompatibilityMeasurement,
    Geometry,
    HalfCheck,
    OutputDrift,
    SelfCheck,
)
from validators.contracts.digest import Digest
from validators.contracts.encoder import EncoderContract
from validators.contracts.errors import BadInput, TooLarge
from validators.contracts.ports import RunningEngine, Tensors
from validators.contracts.tensors import Meaning, TensorSpec

Array = npt.NDArray[Any]

Feeds = tuple[Tensors, Tensors]
"""One item as (input of the old version, input of the new one)."""

MAX_ITEMS = 4096


@dataclass(frozen=True, slots=True)
class EncoderVersion:
    """A version by its contract, and the engine that would serve it (its precision included)."""

    contract: EncoderContract
    engine: RunningEngine


@dataclass(slots=True)
class _Rows:
    """The vectors of both versions, item by item."""

    old: list[Array] = field(default_factory=list)
    new: list[Array] = field(default_factory=list)

    def add(self, old: Array, new: Array) -> None:
        self.old.append(old)
        self.new.append(new)


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
    rows: _Rows = field(default_factory=_Rows)
    asking: _Rows = field(default_factory=_Rows)

    def add(self, old: Array, new: Array) -> None:
        self.old_bad += int(np.count_nonzero(~np.isfinite(old)))
        self.new_bad += int(np.count_nonzero(~np.isfinite(new)))
        self.old_size += old.size
        self.new_size += new.size
        if np.isfinite(old).all() and np.isfinite(new).all():
            self._compare(old.astype(np.float64), new.astype(np.float64))
        if self.is_embedding(old, new):
            self.rows.add(old, new)

    def is_embedding(self, old: Array, new: Array) -> bool:
        """Vectors of the same items: [B, D] each, dimensions may differ."""
        same_items = old.ndim == new.ndim == 2 and len(old) == len(new)
        return self.spec.meaning is Meaning.GLOBAL_EMBEDDING and same_items

    def _compare(self, old: Array, new: Array) -> None:
        before, after = float(np.abs(old).max()), float(np.abs(new).max())
        if before > 0:
            self.linf.append(abs(after - before) / before)
        if old.shape == new.shape:
            self.cosines.append(float(paired_cosines(old.reshape(1, -1), new.reshape(1, -1))[0]))

    def geometry(self, names: Sequence[Digest]) -> Geometry:
        asking = self.asking if self.asking.old else self.rows
        olds, news = np.concatenate(self.rows.old), np.concatenate(self.rows.new)
        two = asking is not self.rows
        old = Cloud(olds, np.concatenate(asking.old) if two else olds)
        new = Cloud(news, np.concatenate(asking.new) if two else news)
        repeated = [(name, row) for name, rows in zip(names, self.rows.old, strict=True)
                    for row in range(len(rows))]  # fmt: skip
        embedding = Embedding(self.spec.name, self.spec.space == self.new_spec.space)
        return measure_geometry(embedding, old, new, repeated=repeated_inputs(repeated))

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
    old: EncoderVersion,
    new: EncoderVersion,
    feeds: Iterable[Feeds],
    *,
    views: Iterable[Feeds] = (),
) -> CompatibilityMeasurement:
    """Run both versions on the same items.

    Args:
        feeds: an item each: the same raw input through each version's own preprocessing, a batch
            of one.
        views: a second view of each item (see `services.compatibility.views`), in the same order,
            that asks for the first one; without any an item asks for itself.

    Raises:
        BadInput: an input that does not fit its engine, another encoder altogether, or another
            number of second views than of items.
        TooLarge: more than MAX_ITEMS items.
    """
    if old.contract.name != new.contract.name:
        raise BadInput(
            "two different encoders are no versions of each other",
            where=f"{old.contract.name}, {new.contract.name}",
            remedy="Compare versions of one encoder.",
        )
    kept = {spec.name: spec for spec in new.contract.outputs}
    gathered = [
        _Output(spec, kept[spec.name]) for spec in old.contract.outputs if spec.name in kept
    ]
    took = _Times([], [])
    names = list[Digest]()
    for feed in feeds:
        _check_count(len(names) + 1)
        names.append(digest_feeds(feed))
        before, after = took.run(old, new, feed)
        for output in gathered:
            output.add(before[output.spec.name], after[output.spec.name])
    _add_views(old, new, views, gathered, len(names))
    return CompatibilityMeasurement(
        old.contract.name,
        old.contract.version,
        new.contract.version,
        len(names),
        tuple(output.drift() for output in gathered),
        tuple(output.geometry(names) for output in gathered if output.rows.old),
        list_differences(
            old.contract,
            new.contract,
            old.engine.manifest.spec.precision,
            new.engine.manifest.spec.precision,
        ),
        tuple(spec.name for spec in old.contract.outputs if spec.name not in kept),
        encode_old_ms=took.median_ms(took.old),
        encode_new_ms=took.median_ms(took.new),
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


@dataclass(frozen=True, slots=True)
class _Times:
    """How long each version took, item by item, in seconds."""

    old: list[float]
    new: list[float]

    def run(
        self, old: EncoderVersion, new: EncoderVersion, feed: Feeds
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        started = time.perf_counter()
        before = old.engine.run(feed[0])
        between = time.perf_counter()
        after = new.engine.run(feed[1])
        self.old.append(between - started)
        self.new.append(time.perf_counter() - between)
        return before, after

    @staticmethod
    def median_ms(seconds: list[float]) -> float:
        return round(float(np.median(seconds)) * 1e3, 3) if seconds else 0.0


def _add_views(
    old: EncoderVersion,
    new: EncoderVersion,
    views: Iterable[Feeds],
    gathered: Sequence[_Output],
    items: int,
) -> None:
    count = 0
    for old_feed, new_feed in views:
        count += 1
        before, after = old.engine.run(old_feed), new.engine.run(new_feed)
        for output in gathered:
            name = output.spec.name
            if output.is_embedding(before[name], after[name]):
                output.asking.add(before[name], after[name])
    if count not in (0, items):
        raise BadInput(
            f"{count} second views of {items} items",
            where=old.contract.name,
            remedy="Give a second view of every item, in the same order, or none.",
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
