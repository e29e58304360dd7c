"""What a decoder's child is asked, and what it says: JSON heads with arrays, never a pickle.

A message is a frame of `services.engines.frames` with a head (JSON bytes) and, for items that are
arrays, their values stacked. What comes from a child is checked: it may have been taken over by the
file it decodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from services.children.report import ErrorDocument
from services.engines.frames import Fill, pack_frame, receive_frame
from services.ingest.measures import Measures
from services.ingest.media.anomalies import Anomaly
from services.ingest.media.limits import Form, MediaLimits
from services.ingest.tracks import Item
from validators.contracts.errors import Refused

DECODE_MEDIA = "services.ingest.tasks.decode_media"

MAX_HEAD_BYTES = 16 * 1024**2
MAX_ORDER_BYTES = 128 * 1024
BATCH = 64
BATCH_BYTES = 512 * 1024
_VALUES = (np.dtype(np.uint8), np.dtype(np.float32))


@dataclass(frozen=True, slots=True)
class DecodeRequest:
    """The child's own numbers of its ends: a Unix socket for orders, a pipe for answers."""

    orders: int
    answers: int


@dataclass(frozen=True, slots=True)
class Order:
    """Comes with the file's descriptor. `track` is the one to stream; None asks which there are."""

    name: str
    size_bytes: int
    kind: str
    limits: MediaLimits
    form: Form
    track: int | None = None


@dataclass(frozen=True, slots=True)
class TrackFacts:
    modality: str
    period_ms: float | None
    feature_dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class State:
    """What a track has noticed and measured so far; `anomalies` are those since the last."""

    anomalies: tuple[Anomaly, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()
    measures: Measures = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """Items from number `first` on; `texts` or `readings` where they are no arrays."""

    first: int
    ts_ms: tuple[float, ...]
    duration_ms: tuple[float, ...]
    places: tuple[str, ...]
    texts: tuple[str, ...] | None = None
    readings: tuple[dict[str, float], ...] | None = None


@dataclass(frozen=True, slots=True)
class Head:
    tracks: tuple[TrackFacts, ...] | None = None
    batch: Batch | None = None
    state: State | None = None
    done: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    head: Head
    values: npt.NDArray[Any] | None
    error: ErrorDocument | None


def pack_message(
    head: Head, values: npt.NDArray[Any] | None = None, error: ErrorDocument | None = None
) -> list[memoryview]:
    arrays = {"head": np.frombuffer(msgspec.json.encode(head), dtype=np.uint8)}
    if values is not None:
        arrays["values"] = values
    return pack_frame(arrays, error)


def receive_message(fill: Fill) -> Message:
    """Raises: EOFError, where the pipe ends; Refused, for what is no message."""
    arrays, error = receive_frame(fill)
    head = arrays.pop("head", None)
    values = arrays.pop("values", None)
    if head is None or arrays or head.nbytes > MAX_HEAD_BYTES or head.dtype != np.uint8:
        raise Refused("a message without a head")
    if values is not None and values.dtype not in _VALUES:
        raise Refused("a message with values of another type")
    try:
        return Message(msgspec.json.decode(head.tobytes(), type=Head), values, error)
    except msgspec.MsgspecError as problem:
        raise Refused("a message whose head is none") from problem


def batches(items: Iterator[Item]) -> Iterator[tuple[Batch, npt.NDArray[Any] | None]]:
    """Small arrays and readings in groups; texts and frames one by one, as they come.

    Where the items end with an error, what came before it is given first.
    """
    held: list[Item] = []
    problem: Exception | None = None
    while True:
        try:
            item = next(items, None)
        except Exception as error:  # raised below, whatever it is
            item, problem = None, error
        if held and (item is None or not _fits(held, item)):
            yield _pack(held)
            held = []
        if item is None:
            break
        held.append(item)
        if not _waits(held):
            yield _pack(held)
            held = []
    if problem is not None:
        raise problem


def unpack(message: Message, after: Item | None, dims: Sequence[int]) -> Iterator[Item]:
    """The items of a batch. Raises: Refused, where they are not what their track may give."""
    batch, values = message.head.batch, message.values
    if batch is None:
        return
    contents = _contents(batch, values, dims)
    columns = (batch.ts_ms, batch.duration_ms, batch.places)
    if any(len(column) != len(contents) for column in columns):
        raise Refused("a batch of uneven columns")
    index, last_ms = (0, -math.inf) if after is None else (after.index + 1, after.ts_ms)
    if batch.first != index:
        raise Refused("a batch that does not follow the one before")
    for ts_ms, duration_ms, place, value in zip(*columns, contents, strict=True):
        if not (math.isfinite(ts_ms) and math.isfinite(duration_ms) and ts_ms >= last_ms):
            raise Refused("items that are not in the order of time")
        yield Item(index, ts_ms, value, duration_ms, place)
        index, last_ms = index + 1, ts_ms


def _contents(
    batch: Batch, values: npt.NDArray[Any] | None, dims: Sequence[int]
) -> Sequence[npt.NDArray[Any] | str | Mapping[str, float]]:
    given = [part for part in (values, batch.texts, batch.readings) if part is not None]
    if len(given) != 1:
        raise Refused("a batch with none or several kinds of content")
    if values is None:
        return batch.texts if batch.texts is not None else batch.readings or ()
    short = len(dims) == 1 and values.ndim == 2 and 0 < values.shape[1] <= dims[0]
    if values.shape[1:] != tuple(dims) and not short:
        raise Refused("values of another shape than their track's")
    return list(values)


def _waits(held: list[Item]) -> bool:
    value = held[0].value
    if isinstance(value, str):
        return False
    size = value.nbytes if isinstance(value, np.ndarray) else 16 * len(value)
    return len(held) < BATCH and size * len(held) < BATCH_BYTES


def _fits(held: list[Item], item: Item) -> bool:
    one, two = held[0].value, item.value
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return one.shape == two.shape
    return type(one) is type(two)


def _pack(items: list[Item]) -> tuple[Batch, npt.NDArray[Any] | None]:
    arrays = [item.value for item in items if isinstance(item.value, np.ndarray)]
    texts = tuple(item.value for item in items if isinstance(item.value, str))
    readings = tuple(dict(item.value) for item in items if isinstance(item.value, Mapping))
    batch = Batch(
        items[0].index,
        tuple(item.ts_ms for item in items),
        tuple(item.duration_ms for item in items),
        tuple(item.place for item in items),
        texts or None,
        readings or None,
    )
    stacked = arrays[0][None] if len(arrays) == 1 else np.stack(arrays) if arrays else None
    return batch, stacked
