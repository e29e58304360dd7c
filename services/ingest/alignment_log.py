"""The cross-modal timestamp alignment log (CTAL): one JSON line for each input, tick and stage.

`observed_offsets_ms` holds a track's offset only where it was observed; negative means that the
track lags the reference. The event's id is a digest of what happened, so the same input at the
same stage has the same id in every run; how long it took and in which trace are not part of it.

The stages that ingest writes: `ingest` (a plain row), and of a recording `decode` (a track),
`observe` (what is out of step, and why), `align` (a tick of the time base), `normalise` and
`features` (a sample). Any other stage may write through a `StageWriter`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from validators.contracts.digest import Digest, canonical_json, digest_value

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class SuspectedCause:
    """Why a track is out of step. `until_ms` None: to the end; `offset_ms` None: nothing is moved.

    `code` is one of `timebase.causes`; `observed_in` "content" or "timestamps".
    """

    track: str
    code: str
    from_ms: float
    until_ms: float | None
    offset_ms: float | None
    within_ms: float | None
    observed_in: str
    evidence: tuple[tuple[str, float | str], ...] = ()


@dataclass(frozen=True, slots=True)
class Alignment:
    """What alignment adds to an event, by track; everything may be empty.

    `observed_in` says by what a track's offset was observed: "content", "timestamps" or "reference"
    (the track itself); `within_ms` how sure it is, to either side. `items` are the numbers of the
    items taken, `residual_offsets_ms` how far they are from the tick after repair, `outcomes` what
    the declared policy did (see `timebase.align.Outcome`).
    """

    observed_in: Mapping[str, str] = field(default_factory=dict)
    within_ms: Mapping[str, float] = field(default_factory=dict)
    items: Mapping[str, int] = field(default_factory=dict)
    residual_offsets_ms: Mapping[str, float] = field(default_factory=dict)
    outcomes: Mapping[str, str] = field(default_factory=dict)
    tolerances_ms: Mapping[str, float] = field(default_factory=dict)
    causes: tuple[SuspectedCause, ...] = ()
    anomalies: Mapping[str, int] = field(default_factory=dict)


NO_ALIGNMENT = Alignment()


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
    alignment: Alignment = NO_ALIGNMENT

    @property
    def event_id(self) -> Digest:
        return digest_value("alignment-event", self._named())

    def document(self) -> dict[str, Any]:
        """The event as it is written: offsets and dimensions as objects by modality."""
        return {
            **self._named(),
            "event_id": self.event_id,
            "feature_dims": dict(self.feature_dims),
            "observed_offsets_ms": dict(self.observed_offsets_ms),
            "processing_ms": round(self.processing_ms, 3),
            "schema_version": SCHEMA_VERSION,
            "trace_id": self.trace_id,
        }

    def _named(self) -> dict[str, Any]:
        return {
            "input_id": self.input_id,
            "modalities": self.modalities,
            "aligned_ts_ms": self.aligned_ts_ms,
            "observed_offsets_ms": self.observed_offsets_ms,
            "feature_dims": self.feature_dims,
            "pipeline_stage": self.pipeline_stage,
            **_stated(self.alignment),
        }


class AlignmentLog:
    """Appends events to a binary stream, one line each, flushed with `close` of the stream."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, event: AlignmentEvent) -> None:
        self._stream.write(event_line(event))

    def write_all(self, events: Sequence[AlignmentEvent]) -> None:
        self._stream.writelines(event_line(event) for event in events)


@dataclass(frozen=True, slots=True)
class StageWriter:
    """Writes the events of one stage: `writer.record("cat", processing_ms=3.2, ...)`."""

    log: AlignmentLog
    stage: str
    trace_id: str = ""

    def record(
        self,
        input_id: str,
        *,
        processing_ms: float,
        aligned_ts_ms: float | None = None,
        observed_offsets_ms: Mapping[str, float] | None = None,
        feature_dims: Mapping[str, tuple[int, ...]] | None = None,
        modalities: Sequence[str] | None = None,
        alignment: Alignment = NO_ALIGNMENT,
    ) -> None:
        """One line. `modalities` are those of `feature_dims` where they are left out."""
        dims = dict(sorted((feature_dims or {}).items()))
        self.log.write(AlignmentEvent(
            input_id=input_id,
            modalities=tuple(dims if modalities is None else modalities),
            aligned_ts_ms=aligned_ts_ms,
            observed_offsets_ms=tuple(sorted((observed_offsets_ms or {}).items())),
            processing_ms=processing_ms,
            feature_dims=tuple(dims.items()),
            pipeline_stage=self.stage,
            trace_id=self.trace_id,
            alignment=alignment,
        ))  # fmt: skip


def event_line(event: AlignmentEvent) -> bytes:
    """The event as one line of canonical JSON."""
    return canonical_json(event.document()) + b"\n"


def _stated(alignment: Alignment) -> dict[str, Any]:
    """The parts that say anything: an event that knows of no alignment has the same id as ever."""
    if alignment is NO_ALIGNMENT:
        return {}
    parts: dict[str, Any] = {
        "observed_in": alignment.observed_in,
        "within_ms": alignment.within_ms,
        "items": alignment.items,
        "residual_offsets_ms": alignment.residual_offsets_ms,
        "outcomes": alignment.outcomes,
        "tolerances_ms": alignment.tolerances_ms,
        "anomalies": alignment.anomalies,
        "causes": [_cause(item) for item in alignment.causes],
    }
    return {name: value for name, value in parts.items() if value}


def _cause(cause: SuspectedCause) -> dict[str, Any]:
    return {
        "track": cause.track,
        "code": cause.code,
        "from_ms": cause.from_ms,
        "until_ms": cause.until_ms,
        "offset_ms": cause.offset_ms,
        "within_ms": cause.within_ms,
        "observed_in": cause.observed_in,
        "evidence": dict(cause.evidence),
    }
