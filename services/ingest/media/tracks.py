"""What every decoder here offers beside the items of a `Track`."""

from __future__ import annotations

from typing import Protocol

from services.ingest.measures import Measures
from services.ingest.media.anomalies import Anomaly
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
