"""The cross-modal timestamp alignment log (CTAL): one JSON line for each sample and stage.

`observed_offsets_ms` holds a track's offset only where it was observed; negative means that the
track lags the reference. The event's id is a digest of what happened, so the same input at the
same stage has the same id in every run; how long it took and in which trace are not part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

from validators.contracts.digest import Digest, canonical_json, digest_value


@dataclass(frozen=True, slots=True)
class AlignmentEvent:
    """What one stage did with one input.

    `feature_dims` are (modality, shape of its features at this stage); `aligned_ts_ms` is the
    input's place on the common time base, None where the source gave no time.
    """

    input_id: str
    modalities: tuple[str, ...]
    aligned_ts_ms: float | None
    observed_offsets_ms: tuple[tuple[str, float], ...]
    processing_ms: float
    feature_dims: tuple[tuple[str, tuple[int, ...]], ...]
    pipeline_stage: str
    trace_id: str = ""

    @property
    def event_id(self) -> Digest:
        return digest_value(
            "alignment-event",
            {
                "input_id": self.input_id,
                "modalities": self.modalities,
                "aligned_ts_ms": self.aligned_ts_ms,
                "observed_offsets_ms": self.observed_offsets_ms,
                "feature_dims": self.feature_dims,
                "pipeline_stage": self.pipeline_stage,
            },
        )


class AlignmentLog:
    """Appends events to a binary stream, one line each, flushed with `close` of the stream."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, event: AlignmentEvent) -> None:
        self._stream.write(event_line(event))

    def write_all(self, events: Sequence[AlignmentEvent]) -> None:
        self._stream.writelines(event_line(event) for event in events)


def event_line(event: AlignmentEvent) -> bytes:
    """The event as one line: offsets and dimensions as objects by modality."""
    document = {
        "event_id": event.event_id,
        "input_id": event.input_id,
        "modalities": event.modalities,
        "aligned_ts_ms": event.aligned_ts_ms,
        "observed_offsets_ms": dict(event.observed_offsets_ms),
        "processing_ms": round(event.processing_ms, 3),
        "feature_dims": dict(event.feature_dims),
        "pipeline_stage": event.pipeline_stage,
        "trace_id": event.trace_id,
    }
    return canonical_json(document) + b"\n"
