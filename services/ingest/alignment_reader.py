"""Reads an alignment log line by line, names bad lines, and publishes the schema of a line.

The shape of `Line` is the one source of the reader and of the JSON Schema that
`modalgate schema ctal` prints. Memory is that of one line, whatever the file's length.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, BinaryIO, Literal

import msgspec

from services.ingest.alignment_log import SCHEMA_VERSION

MAX_LINE_BYTES = 1024 * 1024

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Count = Annotated[int, msgspec.Meta(ge=0)]
Sizes = list[Count]


class Suspect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A suspected cause: which track, since when, by how much (negative: it lags), seen in what."""

    track: Name
    code: Name
    from_ms: float
    until_ms: float | None
    offset_ms: float | None
    within_ms: float | None
    observed_in: Literal["content", "timestamps"]
    evidence: dict[str, float | str]


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One event of the cross-modal timestamp alignment log."""

    schema_version: Literal[1]
    event_id: Annotated[str, msgspec.Meta(pattern="^sha256:[0-9a-f]{64}$")]
    input_id: Name
    modalities: list[Name]
    aligned_ts_ms: float | None
    observed_offsets_ms: dict[str, float]
    processing_ms: Annotated[float, msgspec.Meta(ge=0)]
    feature_dims: dict[str, Sizes]
    pipeline_stage: Name
    trace_id: str
    observed_in: dict[str, Literal["content", "timestamps", "reference"]] = {}
    within_ms: dict[str, Annotated[float, msgspec.Meta(ge=0)]] = {}
    items: dict[str, Count] = {}
    residual_offsets_ms: dict[str, float] = {}
    outcomes: dict[str, Literal["taken", "interpolated", "held", "dropped", "refused", "none"]] = {}
    tolerances_ms: dict[str, Annotated[float, msgspec.Meta(gt=0)]] = {}
    anomalies: dict[str, Count] = {}
    causes: list[Suspect] = []


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no event: its number from 1, and why. Nothing of what it holds is repeated."""

    number: int
    reason: str


def read_events(stream: BinaryIO) -> Iterator[tuple[int, Line] | BadLine]:
    """(line number, event), or the line that is none, in file order; blank lines are skipped."""
    decoder = msgspec.json.Decoder(Line)
    number = 0
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES:
            _skip(stream, raw)
            yield BadLine(number, f"it has more than {MAX_LINE_BYTES} bytes")
            continue
        if raw.isspace():
            continue
        try:
            yield number, decoder.decode(raw)
        except msgspec.ValidationError as error:
            yield BadLine(number, _reason(error))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            yield BadLine(number, "it is not one JSON object in UTF-8")


def alignment_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of one line."""
    schema = msgspec.json.schema(Line)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"CTAL event, version {SCHEMA_VERSION}",
        **schema,
    }


def finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _reason(error: msgspec.ValidationError) -> str:
    """What is wrong, without the values: msgspec names types, keys and places only."""
    text = str(error)
    return text if len(text) < 200 and "unknown field" not in text else "it has a key too many"


def _skip(stream: BinaryIO, raw: bytes) -> None:
    while raw and not raw.endswith(b"\n"):
        raw = stream.readline(MAX_LINE_BYTES)
