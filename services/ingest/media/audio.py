"""Audio as 16 kHz mono float32 blocks or as MFCC frames, streamed, on its own clock.

Times are counted in samples from the time of the first one: a block cannot drift against its
samples. Where a container's own times depart from that count by more than SPLICE_MS, samples were
lost or doubled: the gap is filled with silence, the overlap left out, and said so.

Anomalies: `audio-gap`, `audio-overlap`, and those of `levels`, by number of the chunk (100 ms of a
file, or one decoded frame of a container).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from services.ingest.measures import Measures
from services.ingest.media.levels import Levels
from services.ingest.media.limits import Form, MediaLimits
from services.ingest.media.mfcc import COEFFICIENTS, HOP, PERIOD_MS, RATE_HZ, mfcc_blocks
from services.ingest.media.pcm import Frames, open_pcm
from services.ingest.media.resampling import Samples, resample_blocks
from services.ingest.media.sources import MediaFile
from services.ingest.media.tracks import Decoding
from services.ingest.tracks import Item
from validators.contracts.errors import BadInput, TooLarge

BLOCK = RATE_HZ // 10
BLOCK_MS = 100.0
SPLICE_MS = 40.0


class _Recording(Decoding):
    """What both forms share: one source's samples, spliced by time, and what was seen of it."""

    def __init__(self, file: MediaFile, limits: MediaLimits, form: Form) -> None:
        super().__init__(file, limits, form.modality or "audio")
        self._source = open_pcm(file, limits)
        self._levels = Levels(self._log)
        self._start_ms: float | None = None
        self._taken = 0  # samples at the source's rate, silence put in included
        self._chunk = 0

    @property
    def measures(self) -> Measures:
        own = {
            "channels": float(self._source.channels),
            "duration_ms": round(1000 * self._taken / self._source.rate_hz, 6),
            "source_rate_hz": float(self._source.rate_hz),
            "start_ms": round(self._start_ms or 0.0, 6),
        }
        return tuple(sorted({**own, **dict(self._levels.measures())}.items()))

    @property
    def start_ms(self) -> float:
        """The time of the first sample; known once the first item was read."""
        return self._start_ms or 0.0

    def _resampled(self) -> Iterator[Samples]:
        return resample_blocks(self._mono(), self._source.rate_hz, RATE_HZ)

    def _mono(self) -> Iterator[Samples]:
        """Spliced samples at the source's rate, channels averaged.

        The last good samples are given out before the source's error is raised.
        """
        for chunk in self._source.chunks():
            if not len(chunk.frames):
                continue
            if not np.isfinite(chunk.frames).all():
                raise self._stop("the recording holds NaN or infinity")
            frames = chunk.frames
            if chunk.ts_ms is not None:
                if self._start_ms is None:
                    self._start_ms = chunk.ts_ms
                gap = self._gap(chunk.ts_ms)
                yield from self._silence(gap)
                frames = frames[max(0, -gap) :]
            self._start_ms = self._start_ms or 0.0
            if len(frames):
                yield self._take(frames)
            self._chunk += 1
        self._levels.end_silence()
        if missing := self._source.missing():
            raise self._stop(f"the file ends early, at least {missing} bytes are missing")
        if not self._taken:
            raise self._stop("the recording holds no sample")

    def _take(self, frames: Frames) -> Samples:
        rate_hz = self._source.rate_hz
        self._levels.add(self._chunk, self._now_ms(), 1000 * len(frames) / rate_hz, frames)
        self._count(len(frames))
        return np.asarray(frames.mean(axis=1), dtype=np.float32)

    def _gap(self, ts_ms: float) -> int:
        """Samples that are missing before `ts_ms`; negative where too many came."""
        apart_ms = ts_ms - self._now_ms()
        if abs(apart_ms) <= SPLICE_MS:
            return 0
        code = "audio-gap" if apart_ms > 0 else "audio-overlap"
        self._log.add(code, self._chunk, self._now_ms(), f"{abs(apart_ms):.3f} ms")
        return round(apart_ms * self._source.rate_hz / 1000)

    def _silence(self, samples: int) -> Iterator[Samples]:
        rate_hz = self._source.rate_hz
        while samples > 0:
            size = min(samples, rate_hz)
            self._count(size)
            yield np.zeros(size, dtype=np.float32)
            samples -= size

    def _count(self, samples: int) -> None:
        self._taken += samples
        if 1000 * self._taken > self._limits.duration_ms * self._source.rate_hz:
            raise TooLarge(
                f"the recording is longer than {self._limits.duration_ms:g} ms",
                where=self._file.name, remedy="Split the recording, or raise the limit.",
            )  # fmt: skip

    def _now_ms(self) -> float:
        return (self._start_ms or 0.0) + 1000 * self._taken / self._source.rate_hz

    def _stop(self, what: str) -> BadInput:
        return BadInput(
            what,
            where=f"{self._file.name}, at {self._now_ms():.0f} ms",
            remedy="Record or export it again, or give the whole file.",
        )


class SampleTrack(_Recording):
    """A `MediaTrack` of blocks of 100 ms: float32 [1600] at 16 kHz; the last may be shorter.

    Raises, on opening: Unsupported, TooLarge, BadInput.
    """

    @property
    def period_ms(self) -> float | None:
        return BLOCK_MS

    @property
    def feature_dims(self) -> tuple[int, ...]:
        return (BLOCK,)

    def items(self) -> Iterator[Item]:
        """`place` is "block N"."""
        held = np.zeros(0, dtype=np.float32)
        index = 0
        for samples in self._resampled():
            held = np.concatenate([held, samples])
            while len(held) >= BLOCK:
                yield self._block(index, held[:BLOCK].copy())
                held = held[BLOCK:]
                index += 1
        if len(held):
            yield self._block(index, held)

    def _block(self, index: int, samples: Samples) -> Item:
        length_ms = 1000 * len(samples) / RATE_HZ
        return Item(
            index, self.start_ms + index * BLOCK_MS, samples, length_ms, f"block {index}"
        )  # fmt: skip


class MfccTrack(_Recording):
    """A `MediaTrack` of MFCC vectors: float32 [13], every 10 ms (see `mfcc`).

    Raises, on opening: Unsupported, TooLarge, BadInput.
    """

    @property
    def period_ms(self) -> float | None:
        return PERIOD_MS

    @property
    def feature_dims(self) -> tuple[int, ...]:
        return (COEFFICIENTS,)

    def items(self) -> Iterator[Item]:
        """`ts_ms` is the middle of the window; `place` is "sample N" at 16 kHz."""
        index = 0
        for frames in mfcc_blocks(self._resampled()):
            for vector in frames:
                ts_ms = self.start_ms + index * PERIOD_MS
                yield Item(index, ts_ms, vector, PERIOD_MS, f"sample {index * HOP}")
                index += 1


def open_audio(file: MediaFile, limits: MediaLimits, form: Form) -> SampleTrack | MfccTrack:
    """The form that is asked for. Raises: Unsupported, TooLarge, BadInput."""
    if form.audio == "samples":
        return SampleTrack(file, limits, form)
    if form.audio == "mfcc":
        return MfccTrack(file, limits, form)
    raise BadInput(
        f"audio has no form {form.audio!r}", where="form.audio", remedy='Take "mfcc" or "samples".'
    )
