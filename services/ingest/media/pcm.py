"""Where samples come from: files that soundfile reads, and audio streams in containers.

A source gives chunks of float32 [T, channels], -1..1 at its own rate; a chunk from a container has
the time that the container gives it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import soundfile
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import InputContainer

from services.ingest.media.completeness import missing_bytes
from services.ingest.media.containers import (
    AUDIO_CODECS,
    bytes_missing,
    milliseconds,
    open_container,
    reading,
    sniff,
)
from services.ingest.media.limits import MediaLimits
from services.ingest.media.sources import MediaFile
from validators.contracts.errors import BadInput, TooLarge, Unsupported

Frames = npt.NDArray[np.float32]

CHUNK_S = 0.1
SOURCE_RATES_HZ = range(4_000, 192_001)

_OGG_STARTS_BYTES = 4096
_OGG_VIDEO = (b"\x80theora", b"OVP80", b"BBCD\0")  # Theora, VP8, Dirac

_FILE_FORMATS = ("WAV", "WAVEX", "RF64", "FLAC", "OGG")


@dataclass(frozen=True, slots=True)
class Chunk:
    """`frames` [T, channels]; `ts_ms` of its first sample, None where the source has no clock."""

    frames: Frames
    ts_ms: float | None = None


class PcmSource(Protocol):
    @property
    def rate_hz(self) -> int: ...

    @property
    def channels(self) -> int: ...

    def chunks(self) -> Iterator[Chunk]:
        """Raises: BadInput, after the good chunks."""
        ...

    def missing(self) -> int:
        """How much shorter than declared the source turned out, in bytes; asked at its end."""
        ...


def open_pcm(file: MediaFile, limits: MediaLimits) -> PcmSource:
    """Raises: Unsupported, TooLarge, BadInput."""
    head = file.head(16)
    plain = head.startswith((b"fLaC", b"RF64")) or (head[:4] == b"RIFF" and head[8:12] == b"WAVE")
    source: PcmSource
    if plain or (sniff(head) == "ogg" and not _shows_video(file)):
        source = SoundFileSource(file)
    else:
        source = ContainerSource(file, limits)
    if source.rate_hz not in SOURCE_RATES_HZ:
        raise Unsupported(
            f"a sample rate of {source.rate_hz} Hz is not read", where=file.name,
            remedy="Record at 4 to 192 kHz, best 16 kHz.",
        )  # fmt: skip
    if not 0 < source.channels <= limits.audio_channels:
        raise TooLarge(
            f"the recording has {source.channels} channels, more than {limits.audio_channels}",
            where=file.name, remedy="Export the channels that matter.",
        )  # fmt: skip
    return source


class SoundFileSource:
    """WAV, RF64, FLAC, Ogg (Vorbis, Opus) by libsndfile. Its first sample is at 0 ms."""

    def __init__(self, file: MediaFile) -> None:
        self._file = file
        with self._opened() as opened:
            self.rate_hz = int(opened.samplerate)
            self.channels = int(opened.channels)
            self._declared = int(opened.frames)
        self._read = 0

    def chunks(self) -> Iterator[Chunk]:
        size = max(1, int(self.rate_hz * CHUNK_S))
        with self._opened() as opened:
            while True:
                try:
                    frames = opened.read(size, dtype="float32", always_2d=True)
                except (soundfile.LibsndfileError, RuntimeError) as error:
                    raise self._bad("the recording is damaged") from error
                if not len(frames):
                    return
                self._read += len(frames)
                yield Chunk(frames)

    def missing(self) -> int:
        head = self._file.head(16)
        kind = "wav" if head[:4] == b"RIFF" else "ogg" if head[:4] == b"OggS" else ""
        with self._file.view() as view:
            short = missing_bytes(view, kind, self._file.size_bytes)
        if not short and head[:4] == b"fLaC" and self._read < self._declared:
            return 1
        return short

    def _opened(self) -> Any:
        view = self._file.view()
        try:
            opened = soundfile.SoundFile(view)
        except (soundfile.LibsndfileError, RuntimeError, TypeError) as error:
            raise self._bad("the recording cannot be opened") from error
        if opened.format not in _FILE_FORMATS:
            raise Unsupported(
                f"recordings in {opened.format} are not read", where=self._file.name,
                remedy="Give WAV, FLAC or Ogg, or a container with audio.",
            )  # fmt: skip
        return opened

    def _bad(self, what: str) -> BadInput:
        return BadInput(what, where=self._file.name, remedy="Give the whole file, or record again.")


class ContainerSource:
    """The first audio stream of a container."""

    def __init__(self, file: MediaFile, limits: MediaLimits) -> None:
        self._file = file
        self._threads = limits.decoder_threads
        with open_container(file) as container:
            codec = self._choose(container).codec_context
            self.rate_hz = int(codec.sample_rate)
            self.channels = int(codec.channels)

    def chunks(self) -> Iterator[Chunk]:
        with open_container(self._file) as container:
            stream = self._choose(container)
            packets = container.demux(stream)
            while True:
                with reading(self._file.name, "the audio stream is damaged"):
                    packet = next(packets, None)
                    if packet is None:
                        return
                    if packet.is_corrupt:
                        raise ValueError("a packet that was cut short")
                    frames = packet.decode()
                for frame in frames:
                    yield self._chunk(frame)

    def missing(self) -> int:
        return bytes_missing(self._file)

    def _chunk(self, frame: AudioFrame) -> Chunk:
        if frame.sample_rate != self.rate_hz or frame.layout.nb_channels != self.channels:
            raise BadInput(
                f"the audio changes to {frame.sample_rate} Hz and {frame.layout.nb_channels} "
                "channels within the stream", where=self._file.name,
                remedy="Export the recording again with one rate and one set of channels.",
            )  # fmt: skip
        with reading(self._file.name, "the audio stream has samples of an unknown type"):
            values = _as_float(frame.to_ndarray())
            if not frame.format.is_planar:
                values = values.reshape(-1, self.channels).T
        pts, base = frame.pts, frame.time_base
        ts_ms = None if pts is None or base is None else milliseconds(pts, base)
        return Chunk(values.T, ts_ms)

    def _choose(self, container: InputContainer) -> AudioStream:
        stream = find_audio(container)
        if stream is None:
            raise Unsupported(
                "the container has no audio stream of a codec that is read here",
                where=self._file.name, remedy="Encode the audio as AAC, Opus, FLAC or PCM.",
            )  # fmt: skip
        codec = stream.codec_context
        codec.thread_count = self._threads
        codec.options = {"err_detect": "explode+crccheck+bitstream+buffer"}
        return stream


def find_audio(container: InputContainer) -> AudioStream | None:
    """The first audio stream that can be decoded."""
    for stream in container.streams.audio:
        if stream.codec_context is not None and stream.codec_context.name in AUDIO_CODECS:
            return stream
    return None


def _shows_video(file: MediaFile) -> bool:
    """Whether an Ogg file begins with a video stream: all streams' first pages come first."""
    head = file.head(_OGG_STARTS_BYTES)
    return any(mark in head for mark in _OGG_VIDEO)


def _as_float(values: npt.NDArray[Any]) -> Frames:
    if values.dtype == np.uint8:
        return (values.astype(np.float32) - np.float32(128)) / np.float32(128)
    if np.issubdtype(values.dtype, np.signedinteger):
        return np.asarray(values / -float(np.iinfo(values.dtype).min), dtype=np.float32)
    return np.asarray(values, dtype=np.float32)
