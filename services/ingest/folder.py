"""A data set folder becomes a Dataset: every row either a sample in the quarantine or Unreadable.

A sample is whole or not at all: one medium that cannot be read makes its row unreadable, because
half a pair would be counted by every later gate as if it had been collected that way.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import soundfile

from services.ingest.alignment_log import AlignmentEvent, AlignmentLog
from services.ingest.enclosure import FileRefused, read_inside
from services.ingest.manifest import MANIFEST_NAME, Row, read_rows
from services.ingest.measures import Measures, measure_audio, measure_image, measure_text
from services.ingest.normalise import (
    EmptyMedium,
    normalise_text,
    shrink,
    to_pcm16,
    write_png,
    write_wav,
)
from services.ingest.recording.plan import IngestPlan
from services.ingest.recording.recorder import Recorder
from services.preprocess.media import (
    MAX_AUDIO_BYTES,
    MAX_IMAGE_BYTES,
    SAMPLE_RATE_HZ,
    decode_audio,
    decode_image,
)
from validators.contracts.dataset import Dataset, Media, Sample, Unreadable
from validators.contracts.errors import BadInput, NotFound, TooLarge, Unsupported
from validators.contracts.ports import Clock, ObjectStore

STAGE = "ingest"


@dataclass(frozen=True, slots=True)
class Normalised:
    """A medium in its one form: bytes, IANA type, measures, and the shape of what it holds."""

    data: bytes
    media_type: str
    measures: Measures
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Journal:
    """Where ingest's alignment events go, and the clock that times them."""

    log: AlignmentLog
    clock: Clock
    trace_id: str = ""


def ingest_folder(
    folder: Path,
    quarantine: ObjectStore,
    *,
    journal: Journal | None = None,
    plan: IngestPlan | None = None,
    spool: Path | None = None,
) -> Dataset:
    """Read `folder/manifest.jsonl` and its media into the quarantine store.

    Samples come in id order; rows that cannot be read are listed with a stable reason. `plan` says
    how recordings are taken; while they are, their media wait in `spool` (a temporary folder where
    it is left out), which should be as well guarded as the quarantine.

    Raises:
        NotFound: no such folder, or no manifest in it.
        TooLarge: more rows than one data set may have.
        Unavailable: the store is down.
    """
    manifest = folder / MANIFEST_NAME
    if not manifest.is_file():
        raise NotFound(
            f"no {MANIFEST_NAME} in the data set's folder",
            where=str(folder),
            remedy="Give a folder with a manifest.jsonl, one JSON object a line.",
        )
    samples: dict[str, Sample] = {}
    unreadable: list[Unreadable] = []
    recorder = Recorder(
        folder, quarantine, plan=plan, spool=spool,
        log=journal.log if journal else None, clock=journal.clock if journal else None,
        trace_id=journal.trace_id if journal else "",
    )  # fmt: skip
    with manifest.open("rb") as stream, recorder:
        for row in read_rows(stream):
            outcome = _outcome(folder, row, quarantine, journal, recorder)
            if isinstance(outcome, Unreadable):
                unreadable.append(outcome)
            elif taken := next((item.id for item in outcome if item.id in samples), None):
                detail = f"{taken} is the id of another row's sample already"
                unreadable.append(Unreadable(outcome[0].id, "duplicate-id", detail))
            else:
                samples |= {sample.id: sample for sample in outcome}
    return Dataset(
        tuple(sample for _, sample in sorted(samples.items())),
        tuple(sorted(unreadable, key=lambda row: (row.id, row.detail))),
    )


def _outcome(
    folder: Path,
    row: Row | Unreadable,
    quarantine: ObjectStore,
    journal: Journal | None,
    recorder: Recorder,
) -> list[Sample] | Unreadable:
    if isinstance(row, Unreadable):
        return row
    if row.tracks:
        return recorder.take(row)
    found = _ingest(folder, row, quarantine, journal)
    return found if isinstance(found, Unreadable) else [found]


def _ingest(
    folder: Path, row: Row, quarantine: ObjectStore, journal: Journal | None
) -> Sample | Unreadable:
    started_ns = journal.clock.monotonic_ns() if journal else 0
    try:
        found = {modality: _read_file(folder, modality, path) for modality, path in row.files}
        if row.text is not None:
            found["text"] = _normalise("text", lambda: read_text(row.text or ""))
    except FileRefused as refusal:
        return Unreadable(row.id, refusal.reason, f"line {row.line}: {refusal.what}")
    media = tuple(
        Media(modality, quarantine.put(item.data), item.media_type, item.measures)
        for modality, item in sorted(found.items())
    )
    sample = Sample(row.id, media, row.tags, row.captured_ms)
    if journal:
        elapsed_ms = (journal.clock.monotonic_ns() - started_ns) / 1e6
        journal.log.write(_event(sample, found, elapsed_ms, journal.trace_id))
    return sample


def _read_file(folder: Path, modality: str, path: str) -> Normalised:
    read, limit_bytes = _READERS[modality]
    data = read_inside(folder, path, limit_bytes)
    if not data:
        raise FileRefused(f"empty-{modality}", "a file of the manifest is empty")
    return _normalise(modality, lambda: read(data))


def _normalise(modality: str, read: Callable[[], Normalised]) -> Normalised:
    """`read`, with the contract's errors turned into the stable reasons of an unreadable row."""
    try:
        return read()
    except TooLarge as error:
        raise FileRefused(f"{modality}-too-large", error.what) from error
    except Unsupported as error:
        raise FileRefused(f"unsupported-{modality}", error.what) from error
    except EmptyMedium as error:
        raise FileRefused(f"empty-{modality}", error.what) from error
    except BadInput as error:
        raise FileRefused(f"corrupt-{modality}", error.what) from error


def read_image(data: bytes) -> Normalised:
    """A picture file (JPEG, PNG, WebP) in the normal form."""
    pixels = shrink(decode_image(data))
    return Normalised(write_png(pixels), "image/png", measure_image(pixels), pixels.shape)


def read_audio(data: bytes) -> Normalised:
    """A recording (WAV, FLAC, Ogg) in the normal form."""
    if _holds_no_frame(data):
        raise EmptyMedium("the recording holds no sample")
    samples = decode_audio(data)
    integers = to_pcm16(samples)
    measures = measure_audio(samples, SAMPLE_RATE_HZ)
    return Normalised(write_wav(integers), "audio/wav", measures, integers.shape)


def _holds_no_frame(data: bytes) -> bool:
    try:
        return int(soundfile.info(io.BytesIO(data)).frames) == 0
    except soundfile.LibsndfileError:
        return False  # not a recording at all: decoding says so


def read_text(text: str) -> Normalised:
    """A text in the normal form."""
    plain = normalise_text(text)
    return Normalised(plain.encode(), "text/plain", measure_text(plain), (len(plain),))


_READERS: dict[str, tuple[Callable[[bytes], Normalised], int]] = {
    "image": (read_image, MAX_IMAGE_BYTES),
    "audio": (read_audio, MAX_AUDIO_BYTES),
}


def _event(
    sample: Sample, found: dict[str, Normalised], elapsed_ms: float, trace_id: str
) -> AlignmentEvent:
    return AlignmentEvent(
        input_id=sample.id,
        modalities=tuple(media.modality for media in sample.media),
        aligned_ts_ms=sample.captured_ms,
        observed_offsets_ms=(),  # one time a row: no track's offset can be observed here
        processing_ms=elapsed_ms,
        feature_dims=tuple((modality, item.shape) for modality, item in sorted(found.items())),
        pipeline_stage=STAGE,
        trace_id=trace_id,
    )
