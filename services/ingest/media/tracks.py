"""What every decoder here offers beside the items of a `Track`."""

from __future__ import annotations

from typing import Protocol

from services.ingest.measures import Measures
from services.ingest.media.anomalies import Anomaly, AnomalyLog
from services.ingest.media.limits import MediaLimits
from services.ingest.media.sources import MediaFile
from services.ingest.tracks import Track


class MediaTrack(Track, Protocol):
    """A track that says what was odd about its source, and what it measured.

    Both grow while items are read and are whole once `items` has ended or raised.
    """

    @property
    def anomalies(self) -> tuple[Anomaly, ...]:
        """In the order of their discovery; at most `anomalies.MAX_KEPT` of each code."""
        ...

    @property
    def anomaly_counts(self) -> tuple[tuple[str, int], ...]:
        """(code, how often), sorted by code."""
        ...

    @property
    def measures(self) -> Measures:
        """(name with its unit, value), sorted by name."""
        ...


class Decoding:
    """What every decoder here starts from: its file, its limits, and a log of what is odd."""

    def __init__(self, file: MediaFile, limits: MediaLimits, modality: str) -> None:
        self._file = file
        self._limits = limits
        self._modality = modality
        self._log = AnomalyLog()

    @property
    def modality(self) -> str:
        return self._modality

    @property
    def anomalies(self) -> tuple[Anomaly, ...]:
        return self._log.kept

    @property
    def anomaly_counts(self) -> tuple[tuple[str, int], ...]:
        return self._log.counts
