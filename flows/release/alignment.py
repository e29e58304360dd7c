"""The alignment log of a release: where it is, and what steps after ingest write to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from flows.release.run import Release
from services.ingest.alignment_log import AlignmentLog, StageWriter
from services.ingest.alignment_reader import BadLine, read_events
from validators.contracts.dataset import RECORDING_TAG, Dataset, Media


def alignment_log_path(release: Release) -> Path:
    """In the service's evidence; ingest begins it anew, what comes later appends."""
    folder = release.workspace.home.folder("evidence", release.pipeline.service)
    return folder / "alignment.jsonl"


class Stopwatch:
    """The time between one sample and the next of a step that tells its progress."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._last_ns = now_ns()
        self.spent_ms: list[float] = []

    def lap(self) -> None:
        now_ns = self._now_ns()
        self.spent_ms.append((now_ns - self._last_ns) / 1e6)
        self._last_ns = now_ns


def log_samples(release: Release, stage: str, dataset: Dataset, spent_ms: list[float]) -> None:
    """One event a sample: what the stage gave out, when it was on the time base, how long it took.

    `spent_ms` are in the order of the data set's samples. A sample of a recording keeps the place
    on its recording's time base that ingest gave it.
    """
    path = alignment_log_path(release)
    recorded = any(RECORDING_TAG in sample.tag_map() for sample in dataset.samples)
    places = _places(path) if recorded else {}
    with path.open("ab") as stream:
        writer = StageWriter(AlignmentLog(stream), stage, release.trace_id)
        for sample, spent in zip(dataset.samples, spent_ms, strict=True):
            writer.record(
                sample.id,
                processing_ms=spent,
                aligned_ts_ms=places.get(sample.id, sample.captured_ms),
                feature_dims={item.modality: _dims(item) for item in sample.media},
            )


def _places(path: Path) -> dict[str, float | None]:
    """Where each sample is, as ingest's last stage wrote it down."""
    if not path.is_file():
        return {}
    with path.open("rb") as stream:
        found = (line[1] for line in read_events(stream) if not isinstance(line, BadLine))
        return {
            event.input_id: event.aligned_ts_ms
            for event in found
            if event.pipeline_stage == "normalise"
        }


def _dims(media: Media) -> tuple[int, ...]:
    """The shape that a medium's measures tell."""
    measures = dict(media.measures)
    if "height_px" in measures:
        return (int(measures["height_px"]), int(measures["width_px"]), 3)
    if "duration_ms" in measures:
        return (round(measures["duration_ms"] * 16),)
    return (int(measures["characters"]),) if "characters" in measures else ()
