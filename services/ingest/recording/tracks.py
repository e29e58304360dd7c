"""What is known of a track once it has been read: times, activity, and where its content waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from services.ingest.measures import Measures
from services.ingest.media.anomalies import Anomaly
from services.ingest.timebase.activity import Activity
from services.ingest.timebase.align import Placement
from services.ingest.timebase.diagnosis import Seen
from services.ingest.timebase.rule import Rule
from services.ingest.timebase.stamps import Times


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame of a sample, in the normal form, waiting on disk."""

    path: Path
    measures: Measures
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sound:
    """A waveform on disk: mono int16 at 16 kHz; sample 0 stands at `start_ns`.

    `features` holds its MFCC, float32 rows of `feature_dims`, one every 10 ms from `start_ns`.
    """

    path: Path
    start_ns: int
    samples: int
    features: Path
    feature_count: int


@dataclass(frozen=True, slots=True)
class ReadTrack:
    """One track of a recording. `times` are on the common base, as its own stamps place it.

    `frames` are those taken for samples, by the sample's number; `texts` is a file of
    [time in ns, text] lines in order of time.
    """

    name: str
    rule: Rule
    times: Times
    period_ns: int | None
    dims: tuple[int, ...]
    decode_ms: float
    anomalies: tuple[Anomaly, ...] = ()
    anomaly_counts: tuple[tuple[str, int], ...] = ()
    activity: Activity | None = None
    frames: Mapping[int, Frame] = field(default_factory=dict)
    placements: Mapping[int, Placement] = field(default_factory=dict)
    sound: Sound | None = None
    texts: Path | None = None
    shift_ns: int = 0

    @property
    def seen(self) -> Seen:
        return Seen(self.times, self.period_ns, self.activity, shared_start=self.rule.periodic)
