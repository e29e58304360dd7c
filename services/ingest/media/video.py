"""Video as frames at their presentation times: RGB uint8 [H, W, 3], upright, one at a time.

A file that is damaged or cut short gives its good frames and then a BadInput: the decoder is told
to stop at errors instead of painting over them. AVI has no presentation times: its frames are shown
in the order in which they leave the decoder, at the sorted times of its chunks.

Anomalies beside those of `presentation`:
    size-changed: a frame of another size than the first; it is scaled to the first.
    declared-size: the frames are not as large as the container says.
    rotation-ignored: the display matrix turns by other than quarter turns.
    non-square-pixels: width and height are stored, not stretched to the aspect ratio.
    interlaced: two moments in one frame.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from av.container import InputContainer
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter
from av.video.stream import VideoStream

from services.ingest.measures import Measures
from services.ingest.media.containers import (
    VIDEO_CODECS,
    bytes_missing,
    milliseconds,
    open_container,
    reading,
    require_demuxer,
)
from services.ingest.media.intervals import Intervals
from services.ingest.media.limits import Form, MediaLimits
from services.ingest.media.orientation import Orientation, orientation_of
from services.ingest.media.picture import Picture, display_matrix, shrunk
from services.ingest.media.presentation import PresentationOrder
from services.ingest.media.sources import MediaFile
from services.ingest.media.tracks import Decoding
from services.ingest.tracks import Item
from validators.contracts.errors import BadInput, TooLarge, Unsupported

MAX_RATE_HZ = 1000
_ERRORS = "explode+crccheck+bitstream+buffer"


class VideoTrack(Decoding):
    """A `MediaTrack` of the first video stream that is not a cover picture.

    Raises, on opening:
        Unsupported: no container, stream or codec that is read here.
        TooLarge: larger or longer than its limits, by what it declares.
        BadInput: not one frame can be decoded.
    """

    def __init__(self, file: MediaFile, limits: MediaLimits, form: Form) -> None:
        super().__init__(file, limits, form.modality or "video")
        self._seen = Intervals()
        self._by_order = require_demuxer(file) == "avi"
        with open_container(file) as container:
            stream = self._prepare(container)
            self._period = _period(stream)
            self._picture = self._first_picture(container, stream, form.shrink_to_px)

    @property
    def period_ms(self) -> float | None:
        """From the rate that the container declares; intervals may differ (see `measures`)."""
        return None if self._period is None else float(self._period * 1000)

    @property
    def feature_dims(self) -> tuple[int, ...]:
        return self._picture.shape

    @property
    def measures(self) -> Measures:
        return self._seen.measures()

    def items(self) -> Iterator[Item]:
        """Frames in order of presentation. `place` is "frame N", N in that order."""
        with open_container(self._file) as container:
            stream = self._prepare(container)
            paint = VideoReformatter()
            period_ms = self.period_ms or 0.0
            for ticks, frame in self._ordered(container, stream):
                ts_ms = milliseconds(ticks, _base(stream))
                index = self._seen.frames
                self._check_bounds(index, ts_ms)
                pixels = self._pixels(paint, frame, index, ts_ms)
                length = milliseconds(frame.duration or 0, _base(stream)) or period_ms
                self._seen.add(ts_ms, length)
                yield Item(index, ts_ms, pixels, length, f"frame {index}")
        missing = bytes_missing(self._file)
        if missing:
            raise self._stop(f"the file ends early, {missing} bytes are missing")

    def _ordered(
        self, container: InputContainer, stream: VideoStream
    ) -> Iterator[tuple[int, VideoFrame]]:
        base = _base(stream)
        period = None if self._period is None else self._period / base
        order = PresentationOrder[VideoFrame](self._log, base, period)
        chunks: list[int] = []
        reached: int | None = None
        problem: BadInput | None = None
        for packet, frames, stopped in self._decoded(container, stream):
            problem = stopped
            if packet is not None and packet.dts is not None:
                reached = packet.dts if reached is None else max(reached, packet.dts)
                heapq.heappush(chunks, packet.dts)
            for frame in frames:
                ticks = frame.pts
                if self._by_order:
                    ticks = heapq.heappop(chunks) if chunks else None
                yield from self._placed(order, ticks, frame, None if self._by_order else reached)
        yield from order.finish()
        if problem is not None:
            raise self._stop(problem.what)

    def _placed(
        self,
        order: PresentationOrder[VideoFrame],
        ticks: int | None,
        frame: VideoFrame,
        reached: int | None,
    ) -> Iterator[tuple[int, VideoFrame]]:
        with reading(self._file.name, "a frame has no time, and the stream no rate"):
            yield from order.offer(ticks, frame, reached)

    def _decoded(
        self, container: InputContainer, stream: VideoStream
    ) -> Iterator[tuple[Packet[VideoStream] | None, list[VideoFrame], BadInput | None]]:
        """Packets with the frames that the decoder gave for them; a problem ends them.

        After a problem the decoder is drained: what it holds back was whole before.
        """
        packets = container.demux(stream)
        while True:
            packet = None
            try:
                with reading(self._file.name, "a frame is damaged"):
                    packet = next(packets, None)
                    if packet is None:
                        return
                    if packet.is_corrupt:
                        raise ValueError("a packet that was cut short")
                    frames = packet.decode()
                    broken = next((at for at, frame in enumerate(frames) if frame.is_corrupt), None)
                    if broken is not None:
                        yield packet, frames[:broken], None
                        raise ValueError("a frame that was decoded from damaged data")
            except BadInput as error:
                yield None, self._drained(stream), error
                return
            yield packet, frames, None

    def _drained(self, stream: VideoStream) -> list[VideoFrame]:
        try:
            with reading(self._file.name, "the decoder cannot be drained"):
                rest = stream.codec_context.decode(None)
        except BadInput:
            return []
        sound = [frame for frame in rest if not frame.is_corrupt]
        return sound if len(sound) == len(rest) else []

    def _pixels(
        self, paint: VideoReformatter, frame: VideoFrame, index: int, ts_ms: float
    ) -> npt.NDArray[np.uint8]:
        if (frame.width, frame.height) != self._picture.stored_px:
            detail = f"{frame.width} x {frame.height} px"
            self._log.add("size-changed", index, ts_ms, detail)
        if frame.interlaced_frame:
            self._log.add_once("interlaced", index, ts_ms, "fields are not separated")
        width, height = self._picture.scaled_px
        with reading(self._file.name, f"frame {index} cannot be turned into pixels"):
            painted = paint.reformat(
                frame, width, height, "rgb24", interpolation="AREA", threads=1,
                dst_color_range="JPEG",
            )  # fmt: skip
            pixels = np.asarray(painted.to_ndarray(), dtype=np.uint8)
        return self._picture.orientation.apply(pixels)

    def _prepare(self, container: InputContainer) -> VideoStream:
        stream = _choose(container, self._file.name)
        codec = stream.codec_context
        codec.thread_count = self._limits.decoder_threads
        codec.options = {"max_pixels": str(self._limits.frame_pixels), "err_detect": _ERRORS}
        if codec.width * codec.height > self._limits.frame_pixels:
            raise TooLarge(
                f"its frames have {codec.width} x {codec.height} pixels, more than "
                f"{self._limits.frame_pixels}", where=self._file.name,
                remedy="Scale the video down, or raise the limit.",
            )  # fmt: skip
        return stream

    def _first_picture(
        self, container: InputContainer, stream: VideoStream, shrink_to_px: int | None
    ) -> Picture:
        for _, frames, problem in self._decoded(container, stream):
            if frames:
                return self._describe(frames[0], stream, shrink_to_px)
            if problem is not None:
                raise self._stop(problem.what)
        raise self._stop("the video holds no frame")

    def _describe(
        self, frame: VideoFrame, stream: VideoStream, shrink_to_px: int | None
    ) -> Picture:
        declared = (stream.codec_context.coded_width, stream.codec_context.coded_height)
        size = (frame.width, frame.height)
        if size[0] > declared[0] or size[1] > declared[1]:
            detail = f"{size[0]} x {size[1]} px, declared {declared[0]} x {declared[1]}"
            self._log.add("declared-size", 0, None, detail)
        ratio = stream.sample_aspect_ratio
        if ratio and ratio != 1:
            self._log.add_once("non-square-pixels", 0, None, f"aspect ratio {ratio} of a pixel")
        orientation = orientation_of(display_matrix(frame))
        if orientation is None:
            self._log.add_once("rotation-ignored", 0, None, "not a quarter turn")
        return Picture(size, orientation or Orientation(), shrunk(size, shrink_to_px))

    def _check_bounds(self, index: int, ts_ms: float) -> None:
        if index >= self._limits.frames or ts_ms > self._limits.duration_ms:
            raise TooLarge(
                f"the video has more than {self._limits.frames} frames or "
                f"{self._limits.duration_ms:g} ms", where=f"{self._file.name}, frame {index}",
                remedy="Split the recording, or raise the limit.",
            )  # fmt: skip

    def _stop(self, what: str) -> BadInput:
        return BadInput(
            what,
            where=f"{self._file.name}, frame {self._seen.frames}",
            remedy="Record or export it again, or give the whole file.",
        )


def _choose(container: InputContainer, where: str) -> VideoStream:
    # Streams of a codec that this FFmpeg does not know have no codec context.
    for stream in container.streams.video:
        if stream.disposition.name and "attached_pic" in stream.disposition.name:
            continue
        if stream.codec_context is not None and stream.codec_context.name in VIDEO_CODECS:
            return stream
    raise Unsupported(
        "the container has no video stream of a codec that is read here",
        where=where,
        remedy=f"Encode it as one of {', '.join(sorted(VIDEO_CODECS))}.",
    )


def _base(stream: VideoStream) -> Fraction:
    return stream.time_base or Fraction(1, 1000)


def _period(stream: VideoStream) -> Fraction | None:
    rate = stream.guessed_rate or stream.average_rate
    return 1 / rate if rate and 0 < rate <= MAX_RATE_HZ else None
