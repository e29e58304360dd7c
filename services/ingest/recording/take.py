"""A recording of the manifest becomes aligned samples, or is refused as a whole."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from services.ingest.alignment_log import Alignment, AlignmentLog, StageWriter
from services.ingest.enclosure import FileRefused, open_inside
from services.ingest.manifest import Row, TrackSource
from services.ingest.media import Form, MediaFile, MediaTrack
from services.ingest.media.isolated import Decoders
from services.ingest.normalise import MAX_SIDE_PX
from services.ingest.recording.comparing import (
    Compared,
    compare,
    reference_of,
    require_possible,
    seen_in,
    suspected,
)
from services.ingest.recording.plan import IngestPlan
from services.ingest.recording.reading import Reading, read_track
from services.ingest.recording.sampling import Cut, cut_samples, read_features, store_cut
from services.ingest.recording.ticking import write_ticks
from services.ingest.recording.tracks import ReadTrack
from services.ingest.timebase.ticks import NS_PER_MS, to_ms
from validators.contracts.dataset import RECORDING_TAG, Media, Sample
from validators.contracts.errors import BadInput, NotFound, TooLarge, Unsupported
from validators.contracts.ports import Clock, ObjectStore


@dataclass(frozen=True, slots=True)
class Studio:
    """What taking recordings needs: decoders, a place to spool, a store, a clock, perhaps a log."""

    decoders: Decoders
    spool: Path
    quarantine: ObjectStore
    plan: IngestPlan
    clock: Clock
    log: AlignmentLog | None = None
    trace_id: str = ""

    def writer(self, stage: str) -> StageWriter | None:
        return None if self.log is None else StageWriter(self.log, stage, self.trace_id)


def take_recording(folder: Path, row: Row, studio: Studio) -> list[Sample]:
    """The samples of a recording, in order of time.

    Raises:
        FileRefused: with a stable reason that names the track; nothing was stored.
        Unavailable: the store is down, or its disk is full.
    """
    with TemporaryDirectory(dir=studio.spool, prefix="recording-") as name:
        tracks = _read_all(folder, row, studio, Path(name))
        for track in tracks:
            require_possible(track)
        reference = reference_of(tracks)
        started_ns = studio.clock.monotonic_ns()
        compared = compare(tracks, studio.plan)
        spent_ms = (studio.clock.monotonic_ns() - started_ns) / NS_PER_MS
        _tell(row, reference, compared, studio, spent_ms)
        with _explained("recording"):
            write_ticks(
                row.id, reference, compared, writer=studio.writer("align"), clock=studio.clock
            )
            cuts = cut_samples(reference, compared, studio.plan.every_ns)
        if not cuts:
            raise FileRefused("empty-recording", "the recording gives no sample")
        return [_store(row, cut, compared, studio) for cut in cuts]


def _read_all(folder: Path, row: Row, studio: Studio, spool: Path) -> list[ReadTrack]:
    with contextlib.ExitStack() as files:
        opened = list(_open_all(folder, row, studio, files))
        return [_read(row, source, track, studio, spool) for source, track in opened]


def _open_all(
    folder: Path, row: Row, studio: Studio, files: contextlib.ExitStack
) -> Iterator[tuple[TrackSource, MediaTrack]]:
    """Every track of the row; the sound of a video unless the row names a recording for it."""
    named = {source.name for source in row.tracks}
    for source in row.tracks:
        with _explained(source.name):
            descriptor = open_inside(folder, source.file)
            if not os.fstat(descriptor).st_size:
                os.close(descriptor)
                raise FileRefused(f"empty-{source.name}", "a file of the manifest is empty")
            limits = studio.decoders.limits
            bound = limits.document_bytes if source.name == "document" else limits.file_bytes
            name = f"{row.id}, {source.name}"
            file = files.enter_context(MediaFile.adopt(descriptor, name=name, limit_bytes=bound))
            form = Form(
                shrink_to_px=MAX_SIDE_PX,
                audio="samples",
                page_times_ms=source.page_times_ms or _turned(row, studio),
            )
            tracks = studio.decoders.open_tracks(file, source.name, form)
        yield source, tracks[0]
        if source.name == "video" and len(tracks) > 1 and "audio" not in named:
            yield TrackSource("audio", source.file), tracks[1]


def _turned(row: Row, studio: Studio) -> tuple[float, ...]:
    """The pages of a document alone are a sample each, whenever they were shown."""
    if [source.name for source in row.tracks] != ["document"]:
        return ()
    every_ms = studio.plan.settings.sample_every_ms
    return tuple(page * every_ms for page in range(studio.decoders.limits.pages))


def _captured_ms(row: Row, at_ms: float) -> float | None:
    """When a sample was taken; a document of which nobody says when it was shown has one time."""
    if [(source.name, source.page_times_ms) for source in row.tracks] == [("document", ())]:
        return row.captured_ms
    return (row.captured_ms or 0.0) + at_ms


def _read(
    row: Row, source: TrackSource, track: MediaTrack, studio: Studio, spool: Path
) -> ReadTrack:
    periodic = source.name in ("video", "audio", "sensors")
    how = Reading(
        spool, studio.plan.rule(source.name, periodic=periodic), studio.plan.every_ns,
        studio.clock, source.start_ms, row.captured_ms,
    )  # fmt: skip
    with _explained(source.name):
        read = read_track(source.name, track, how)
    if not len(read.times) and source.name != "document":
        raise FileRefused(f"empty-{source.name}", f"the track {source.name} holds nothing")
    if writer := studio.writer("decode"):
        writer.record(
            row.id,
            processing_ms=read.decode_ms,
            aligned_ts_ms=to_ms(int(read.times[0])) if len(read.times) else None,
            feature_dims={source.name: read.dims},
            alignment=Alignment(anomalies=dict(read.anomaly_counts)),
        )
    return read


def _tell(
    row: Row,
    reference: ReadTrack,
    compared: Mapping[str, Compared],
    studio: Studio,
    spent_ms: float,
) -> None:
    writer = studio.writer("observe")
    if writer is None:
        return
    writer.record(
        row.id,
        processing_ms=spent_ms,
        feature_dims={name: item.track.dims for name, item in compared.items()},
        alignment=Alignment(
            observed_in=seen_in(compared, reference),
            within_ms={
                name: to_ms(item.diagnosis.within_ns)
                for name, item in compared.items()
                if item.diagnosis.within_ns is not None and item.track is not reference
            },
            tolerances_ms={
                name: to_ms(item.track.rule.tolerance_ns) for name, item in compared.items()
            },
            causes=tuple(cause for item in compared.values() for cause in suspected(item)),
        ),
    )


def _store(row: Row, cut: Cut, compared: Mapping[str, Compared], studio: Studio) -> Sample:
    started_ns = studio.clock.monotonic_ns()
    sound = compared["audio"].track.sound if "audio" in compared else None
    sample_id = f"{row.id}.{cut.number:05d}"
    media = store_cut(cut, sound, studio.quarantine)
    at_ms = to_ms(cut.at_ns)
    if writer := studio.writer("normalise"):
        spent = (studio.clock.monotonic_ns() - started_ns) / NS_PER_MS
        writer.record(sample_id, processing_ms=spent, aligned_ts_ms=at_ms,
                      feature_dims=_dims(cut, media))  # fmt: skip
    if (writer := studio.writer("features")) and sound is not None and cut.sound is not None:
        started_ns = studio.clock.monotonic_ns()
        features = read_features(sound, *cut.sound)
        spent = (studio.clock.monotonic_ns() - started_ns) / NS_PER_MS
        writer.record(sample_id, processing_ms=spent, aligned_ts_ms=at_ms,
                      feature_dims={"audio": features.shape})  # fmt: skip
    tags = {RECORDING_TAG: row.id, **dict(row.tags)}
    return Sample(sample_id, media, tuple(sorted(tags.items())), _captured_ms(row, at_ms))


def _dims(cut: Cut, media: tuple[Media, ...]) -> dict[str, tuple[int, ...]]:
    dims: dict[str, tuple[int, ...]] = {}
    if cut.frame is not None:
        dims["image"] = cut.frame.shape
    if cut.sound is not None:
        dims["audio"] = (cut.sound[1] - cut.sound[0],)
    if cut.text is not None:
        dims["text"] = (len(cut.text),)
    return dims


@contextlib.contextmanager
def _explained(track: str) -> Iterator[None]:
    """The contract's errors as the stable reasons of an unreadable row."""
    try:
        yield
    except NotFound as error:
        raise FileRefused("missing-file", error.what) from error
    except TooLarge as error:
        raise FileRefused(f"{track}-too-large", _said(error)) from error
    except Unsupported as error:
        raise FileRefused(f"unsupported-{track}", _said(error)) from error
    except BadInput as error:
        raise FileRefused(f"corrupt-{track}", _said(error)) from error


def _said(error: BadInput) -> str:
    return f"{error.what} ({error.where})" if error.where else error.what
