"""Takes the recordings of one folder: its decoders are started for the first of them."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from services.ingest.alignment_log import AlignmentLog
from services.ingest.enclosure import FileRefused
from services.ingest.manifest import Row
from services.ingest.media.isolated import Decoders
from services.ingest.recording.plan import IngestPlan
from services.ingest.recording.take import Studio, take_recording
from validators.contracts.dataset import Sample, Unreadable
from validators.contracts.ports import Clock, ObjectStore


class Recorder:
    """Use it in a `with`: decoders and spool end with it.

    The spool is a folder of its own inside `spool`, or among temporary files where that is None.
    """

    def __init__(
        self,
        folder: Path,
        quarantine: ObjectStore,
        *,
        plan: IngestPlan | None = None,
        spool: Path | None = None,
        log: AlignmentLog | None = None,
        clock: Clock | None = None,
        trace_id: str = "",
    ) -> None:
        self._folder = folder
        self._quarantine = quarantine
        self._plan = plan or IngestPlan()
        self._spool = spool
        self._log = log
        self._clock = clock or _Still()
        self._trace_id = trace_id
        self._stack = ExitStack()
        self._studio: Studio | None = None

    def take(self, row: Row) -> list[Sample] | Unreadable:
        """The samples of a recording, or why there are none."""
        if self._studio is None:
            self._studio = self._open()
        try:
            return take_recording(self._folder, row, self._studio)
        except FileRefused as refusal:
            return Unreadable(row.id, refusal.reason, f"line {row.line}: {refusal.what}")

    def _open(self) -> Studio:
        spool = Path(self._stack.enter_context(TemporaryDirectory(dir=self._spool, prefix="raw-")))
        decoders = self._stack.enter_context(Decoders(spool))
        return Studio(
            decoders, spool, self._quarantine, self._plan, self._clock, self._log, self._trace_id
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


class _Still:
    """The clock of an ingest that nobody times."""

    def monotonic_ns(self) -> int:
        return 0

    def wall_ns(self) -> int:
        return 0
