"""Drift windows as documents: safetensors, with one canonical JSON header in its metadata.

The digest of the bytes is the window's name. Reading trusts nothing: sizes are bounded, nothing is
unpickled, every tensor has to be one that the header names, of its type and length. Windows of the
first format (bare `descriptor/` and `embedding/` tensors) are read as what they were: their columns
have no rows in common, and their vectors no origin.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save

from validators.contracts.digest import Digest, canonical_json, digest_bytes, require_digest
from validators.contracts.documents import load
from validators.contracts.errors import BadInput, Refused
from validators.contracts.origin import VectorOrigin
from validators.drift.columns import Categories, Embedded, Scalars, as_rows
from validators.drift.window import FORMAT, MAX_COLUMNS, DriftWindow

MAX_WINDOW_BYTES = 1024 * 1024 * 1024
MAX_HEADER_BYTES = 64 * 1024 * 1024
_KEY = "modalgate.drift_window"

Tensors = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    name: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Source:
    modality: str
    space: str
    origin: VectorOrigin


@dataclass(frozen=True, slots=True)
class _Header:
    format: int
    rows: int
    seen: int
    from_ms: int | None
    until_ms: int | None
    times: bool
    recordings: bool
    descriptors: tuple[str, ...]
    categories: tuple[_Vocabulary, ...]
    tags: tuple[_Vocabulary, ...]
    embeddings: tuple[_Source, ...]


def write_window(window: DriftWindow) -> bytes:
    """The window as safetensors bytes; the same window always gives the same bytes.

    Raises:
        BadInput: a window of the first format, or vectors without an origin.
    """
    if window.format != FORMAT:
        raise BadInput("windows of the first format are read, never written")
    header = _Header(
        FORMAT, window.rows, window.seen, window.from_ms, window.until_ms,
        window.times_ms is not None, window.recordings is not None,
        tuple(sorted(window.descriptors)),
        _vocabularies(window.categories),
        _vocabularies(window.tags),
        tuple(_source(name, window.embeddings[name]) for name in sorted(window.embeddings)),
    )  # fmt: skip
    return bytes(save(_tensors(window), {_KEY: canonical_json(header).decode()}))


def digest_of(window: DriftWindow) -> Digest:
    """What the window is called."""
    return digest_bytes(write_window(window))


def read_window(data: bytes) -> DriftWindow:
    """The window that `write_window` wrote, or one of the first format.

    Raises:
        Refused: not safetensors, too large, or holding anything that is no window.
    """
    if len(data) > MAX_WINDOW_BYTES:
        raise Refused(f"a drift window of {len(data)} bytes is too large")
    try:
        tensors = load_tensors(data)
        header = _metadata(data)
    except (SafetensorError, ValueError, KeyError) as error:
        raise Refused(
            "not a drift window", remedy="Measure the window again; it was damaged."
        ) from error
    try:
        return _first_format(tensors) if header is None else _read(header, dict(tensors))
    except BadInput as error:
        raise Refused(f"not a drift window: {error.what}", where=error.where) from error


def _tensors(window: DriftWindow) -> dict[str, npt.NDArray[Any]]:
    tensors: dict[str, npt.NDArray[Any]] = {}
    for name, scalars in window.descriptors.items():
        tensors[f"descriptor/{name}"] = scalars.values
        tensors[f"present/{name}"] = scalars.present
    for kind, columns in (("category", window.categories), ("tag", window.tags)):
        tensors |= {f"{kind}/{name}": column.codes for name, column in columns.items()}
    for name, embedded in window.embeddings.items():
        tensors[f"vectors/{name}"] = embedded.vectors
        tensors[f"rows/{name}"] = embedded.rows.astype(np.int32)
    if window.times_ms is not None:
        tensors["times_ms"] = window.times_ms
    if window.recordings is not None:
        tensors["recordings"] = window.recordings
    return {name: np.ascontiguousarray(tensors[name]) for name in sorted(tensors)}


def _read(header: _Header, tensors: dict[str, npt.NDArray[Any]]) -> DriftWindow:
    def part(name: str, dtype: type[np.generic]) -> npt.NDArray[Any]:
        values = tensors.pop(name, None)
        if values is None or values.dtype != dtype:
            raise BadInput("a tensor is missing or of another type", where=name[:160])
        return values

    window = DriftWindow(
        rows=header.rows,
        descriptors={
            name: Scalars(part(f"descriptor/{name}", np.float64), part(f"present/{name}", np.bool_))
            for name in header.descriptors
        },
        categories={
            item.name: Categories(part(f"category/{item.name}", np.int32), item.words)
            for item in header.categories
        },
        tags={
            item.name: Categories(part(f"tag/{item.name}", np.int32), item.words)
            for item in header.tags
        },
        embeddings={
            item.modality: Embedded(
                part(f"vectors/{item.modality}", np.float32),
                as_rows(part(f"rows/{item.modality}", np.int32)),
                item.space,
                _checked(item.origin),
            )
            for item in header.embeddings
        },
        times_ms=part("times_ms", np.int64) if header.times else None,
        recordings=part("recordings", np.int32) if header.recordings else None,
        from_ms=header.from_ms,
        until_ms=header.until_ms,
        seen=header.seen,
    )
    if tensors:
        raise BadInput("a tensor that the header does not name", where=min(tensors)[:160])
    return window


def _checked(origin: VectorOrigin) -> VectorOrigin:
    return VectorOrigin(require_digest(origin.encoder), require_digest(origin.engine))


def _metadata(data: bytes) -> _Header | None:
    """The header, or None in the first format. `data` is known to be safetensors."""
    size = int.from_bytes(data[:8], "little")
    if size > MAX_HEADER_BYTES:
        raise Refused(f"a drift window with a header of {size} bytes is too large")
    text = (json.loads(data[8 : 8 + size]).get("__metadata__") or {}).get(_KEY)
    if text is None:
        return None
    header = load(_Header, text.encode(), where="drift window")
    if header.format != FORMAT:
        raise Refused(
            f"a drift window of format {header.format}, where {FORMAT} is known",
            remedy="Update Modalgate, or measure the window again.",
        )
    return header


def _first_format(tensors: Tensors) -> DriftWindow:
    """Columns are filled up with absent rows to the length of the longest."""
    rows = max((len(values) for values in tensors.values() if values.ndim), default=0)
    if len(tensors) > 2 * MAX_COLUMNS:
        raise BadInput(f"a drift window has at most {MAX_COLUMNS} columns")
    descriptors, embeddings = dict[str, Scalars](), dict[str, Embedded]()
    for name, values in tensors.items():
        kind, _, column = name.partition("/")
        if kind == "descriptor" and values.dtype == np.float64 and values.ndim == 1:
            if not np.isfinite(values).all():
                raise BadInput("a value is not finite", where=name[:160])
            padded = np.full(rows, np.nan)
            padded[: len(values)] = values
            descriptors[column] = Scalars.of(padded)
        elif kind == "embedding" and values.dtype == np.float32 and values.ndim == 2:
            embeddings[column] = Embedded(values, np.arange(len(values)), column, None)
        else:
            raise BadInput("a tensor of another kind", where=name[:160])
    return DriftWindow(rows, descriptors, embeddings=embeddings, format=1)


def _vocabularies(columns: Mapping[str, Categories]) -> tuple[_Vocabulary, ...]:
    return tuple(_Vocabulary(name, columns[name].vocabulary) for name in sorted(columns))


def _source(modality: str, column: Embedded) -> _Source:
    if column.origin is None:
        raise BadInput("vectors without an origin are never recorded", where=modality)
    return _Source(modality, column.space, column.origin)
