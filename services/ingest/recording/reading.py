"""Reads each kind of track once: content to the spool, times and activity to memory."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from services.ingest.media import MediaTrack
from services.ingest.media.mfcc import COEFFICIENTS, HOP, MfccStream
from services.ingest.normalise import to_pcm16
from services.ingest.recording.frames import FrameTaker, Pixels, grey
from services.ingest.recording.tracks import ReadTrack, Sound
from services.ingest.timebase.activity import Activity, motion, movement, rise
from services.ingest.timebase.align import Stamp
from services.ingest.timebase.rule import Rule
from services.ingest.timebase.ticks import NS_PER_MS, NS_PER_S, to_ns
from services.ingest.tracks import Item
from services.preprocess.media import SAMPLE_RATE_HZ
from validators.contracts.errors import TooLarge
from validators.contracts.ports import Clock

HOP_NS = HOP * NS_PER_S // SAMPLE_RATE_HZ
WALL_MS = 1e11
"""A number of milliseconds from here on counts from 1970 (1973 and later), not from a start."""
MAX_TEXT_BYTES = 256 * 1024 * 1024
_FLOOR_DB = -80.0


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading a track needs: where to spool, how often samples are, and where zero is.

    `shift_ms` is added to the track's own times; `captured_ms` is taken from times that count from
    1970 where nothing else was declared.
    """

    folder: Path
    rule: Rule
    every_ns: int
    clock: Clock
    shift_ms: float | None = None
    captured_ms: float | None = None

    def shift_ns(self, first_ms: float) -> int:
        if self.shift_ms is not None:
            return to_ns(self.shift_ms)
        if self.captured_ms is not None and first_ms >= WALL_MS:
            return -to_ns(self.captured_ms)
        return 0


def read_track(name: str, track: MediaTrack, how: Reading) -> ReadTrack:
    """A track, read to its end.

    Raises:
        BadInput, TooLarge, Unsupported: as its decoder; nothing of the track is used then.
    """
    return _READERS[name](name, track, how)


def _video(name: str, track: MediaTrack, how: Reading) -> ReadTrack:
    times, energies, previous = array("q"), array("d"), None
    timed, period_ns = _Timed(how), _period(track)
    with FrameTaker(how.rule, how.every_ns, how.folder) as taker:
        for item, ts_ns in timed.items(track):
            pixels = cast("Pixels", item.value)
            small = grey(pixels)
            energies.append(motion(previous, small))
            times.append(ts_ns)
            taker.offer(Stamp(ts_ns, item.index), pixels)
            previous = small
        if times:
            taker.finish(times[-1] + (period_ns or 1))
    stamps = _integers(times)
    return ReadTrack(
        name, how.rule, stamps, period_ns, track.feature_dims, timed.spent_ms(),
        track.anomalies, track.anomaly_counts,
        activity=Activity(stamps, rise(np.frombuffer(energies, np.float64), stamps)),
        frames=taker.frames, placements=taker.placements, shift_ns=timed.shift_ns,
    )  # fmt: skip


def _audio(name: str, track: MediaTrack, how: Reading) -> ReadTrack:
    path, features = how.folder / "audio.pcm", how.folder / "audio.mfcc"
    stream, levels = MfccStream(), array("d")
    timed, start_ns, count, frames = _Timed(how), 0, 0, 0
    held = np.zeros(0, np.float32)
    with path.open("wb") as waveform, features.open("wb") as rows:
        for item, ts_ns in timed.items(track):
            samples = cast("npt.NDArray[np.float32]", item.value)
            if not count:
                start_ns = ts_ns
            count += len(samples)
            waveform.write(to_pcm16(samples).tobytes())
            frames += _write_rows(rows, stream.push(samples))
            held = np.concatenate([held, samples])
            whole = len(held) // HOP * HOP
            levels.extend(_levels(held[:whole]).tolist())
            held = held[whole:]
        frames += _write_rows(rows, stream.finish())
    times = start_ns + HOP_NS * np.arange(frames, dtype=np.int64)
    loud = np.frombuffer(levels, np.float64) if levels else np.zeros(0)
    middles = start_ns + HOP_NS // 2 + HOP_NS * np.arange(len(loud), dtype=np.int64)
    return ReadTrack(
        name, how.rule, times, HOP_NS, (COEFFICIENTS,), timed.spent_ms(),
        track.anomalies, track.anomaly_counts, activity=Activity(middles, rise(loud, middles)),
        sound=Sound(path, start_ns, count, features, frames), shift_ns=timed.shift_ns,
    )  # fmt: skip


def _texts(name: str, track: MediaTrack, how: Reading) -> ReadTrack:
    path, times, timed, size = how.folder / f"{name}.jsonl", array("q"), _Timed(how), 0
    with path.open("wb") as out:
        for item, ts_ns in timed.items(track):
            line = json.dumps([ts_ns, item.value], ensure_ascii=False).encode() + b"\n"
            size += len(line)
            if size > MAX_TEXT_BYTES:
                raise TooLarge(
                    f"the texts have more than {MAX_TEXT_BYTES} bytes", remedy="Split the file."
                )
            out.write(line)
            times.append(ts_ns)
    return ReadTrack(
        name, how.rule, _integers(times), None, (), timed.spent_ms(),
        track.anomalies, track.anomaly_counts, texts=path, shift_ns=timed.shift_ns,
    )  # fmt: skip


def _sensors(name: str, track: MediaTrack, how: Reading) -> ReadTrack:
    times, sizes, timed = array("q"), array("d"), _Timed(how)
    for item, ts_ns in timed.items(track):
        values = cast("Mapping[str, float]", item.value)
        times.append(ts_ns)
        sizes.append(float(np.sqrt(sum(value * value for value in values.values()))))
    stamps = _integers(times)
    moved = rise(movement(np.frombuffer(sizes, np.float64) if sizes else np.zeros(0)), stamps)
    return ReadTrack(
        name, how.rule, stamps, _period(track), track.feature_dims, timed.spent_ms(),
        track.anomalies, track.anomaly_counts, activity=Activity(stamps, moved),
        shift_ns=timed.shift_ns,
    )  # fmt: skip


class _Timed:
    """Items with their times on the common base; counts the time that reading them takes."""

    def __init__(self, how: Reading) -> None:
        self._how = how
        self._started_ns = how.clock.monotonic_ns()
        self.shift_ns = 0

    def items(self, track: MediaTrack) -> Iterator[tuple[Item, int]]:
        first = True
        for item in track.items():
            if first:
                self.shift_ns, first = self._how.shift_ns(item.ts_ms), False
            yield item, round(item.ts_ms * NS_PER_MS) + self.shift_ns

    def spent_ms(self) -> float:
        return (self._how.clock.monotonic_ns() - self._started_ns) / NS_PER_MS


def _levels(samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """The level of each 10 ms in dB of full scale."""
    hops = samples.reshape(-1, HOP).astype(np.float64)
    power = np.mean(hops**2, axis=1)
    levels: npt.NDArray[np.float64] = 10 * np.log10(np.maximum(power, 10 ** (_FLOOR_DB / 10)))
    return levels


def _write_rows(out: Any, rows: npt.NDArray[np.float32]) -> int:
    out.write(rows.tobytes())
    return len(rows)


def _integers(values: array[int]) -> npt.NDArray[np.int64]:
    return np.frombuffer(values, np.int64).copy() if values else np.zeros(0, np.int64)


def _period(track: MediaTrack) -> int | None:
    return None if track.period_ms is None else to_ns(track.period_ms)


_READERS: dict[str, Callable[[str, MediaTrack, Reading], ReadTrack]] = {
    "video": _video,
    "audio": _audio,
    "document": _texts,
    "events": _texts,
    "sensors": _sensors,
}
