"""How loud a recording is, chunk by chunk: clipping at 0 dBFS and silence, as they come."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from services.ingest.measures import SILENCE_DB, Measures
from services.ingest.media.anomalies import AnomalyLog

CLIPPED = 32_700 / 32_768
CLIPPED_SHARE = 0.001
"""Of a chunk's samples at full scale, from which it is reported: a single peak may touch it."""

SILENT_DB = -60.0
SILENT_MS = 1000.0
"""A silence is reported from this length on."""


@dataclass(frozen=True, slots=True)
class Level:
    """Of one chunk, over all its channels, relative to full scale."""

    rms_db: float
    clipped_share: float

    @property
    def silent(self) -> bool:
        return self.rms_db <= SILENT_DB


def measure_level(frames: npt.NDArray[np.float32]) -> Level:
    """Of frames [T, channels], T at least 1."""
    wide = frames.astype(np.float64)
    power = float(np.mean(wide**2))
    return Level(_decibels(power), float(np.mean(np.abs(wide) >= CLIPPED)))


class Levels:
    """Adds chunks up, and reports clipped chunks (`clipped`) and silences (`silent`)."""

    def __init__(self, log: AnomalyLog) -> None:
        self._log = log
        self._samples = 0
        self._power = 0.0
        self._clipped = 0.0
        self._silent = 0.0
        self._peak = 0.0
        self._silence: tuple[int, float, float] | None = None  # chunk, from and to in ms

    def add(
        self, chunk: int, ts_ms: float, length_ms: float, frames: npt.NDArray[np.float32]
    ) -> Level:
        """One chunk of frames [T, channels]."""
        level = measure_level(frames)
        size = len(frames)
        self._samples += size
        self._power += size * float(np.mean(frames.astype(np.float64) ** 2))
        self._clipped += size * level.clipped_share
        self._peak = max(self._peak, float(np.max(np.abs(frames))))
        if level.clipped_share >= CLIPPED_SHARE:
            detail = f"{level.clipped_share:.4f} of its samples at full scale"
            self._log.add("clipped", chunk, ts_ms, detail)
        if level.silent:
            self._silent += size
            first, since, _ = self._silence or (chunk, ts_ms, ts_ms)
            self._silence = (first, since, ts_ms + length_ms)
        else:
            self.end_silence()
        return level

    def end_silence(self) -> None:
        """A silence ends here: by a sound, or by the recording's end."""
        if self._silence is not None:
            chunk, since, until = self._silence
            if until - since >= SILENT_MS:
                self._log.add("silent", chunk, since, f"{until - since:.0f} ms")
        self._silence = None

    def measures(self) -> Measures:
        size = max(self._samples, 1)
        values = {
            "clipped_share": self._clipped / size,
            "peak_db": _decibels(self._peak**2),
            "rms_db": _decibels(self._power / size),
            "silent_share": self._silent / size,
        }
        return tuple((name, round(value, 6)) for name, value in values.items())


def _decibels(power: float) -> float:
    return max(10 * math.log10(power), SILENCE_DB) if power > 0 else SILENCE_DB
