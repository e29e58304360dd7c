"""Every tick of the reference decided for every track, and written to the alignment log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from services.ingest.alignment_log import Alignment, StageWriter
from services.ingest.enclosure import FileRefused
from services.ingest.recording.comparing import Compared
from services.ingest.recording.tracks import ReadTrack
from services.ingest.timebase.align import Outcome, Placement, Stamp, align
from services.ingest.timebase.rule import TARGETS
from services.ingest.timebase.ticks import NS_PER_MS, ticks_over, to_ms
from validators.contracts.errors import TooLarge
from validators.contracts.ports import Clock

MAX_TICKS = 3_000_000
"""More than a day of 30 ticks a second."""
_THERE = (Outcome.TAKEN, Outcome.INTERPOLATED, Outcome.HELD)


@dataclass(slots=True)
class Ticked:
    """How often each track had what: by track, then by outcome."""

    outcomes: dict[str, Counter[Outcome]] = field(default_factory=dict)

    def add(self, name: str, outcome: Outcome) -> None:
        self.outcomes.setdefault(name, Counter())[outcome] += 1


def tick_moments(reference: ReadTrack) -> Iterable[int]:
    """The moments that are asked about, in ns: the target rate of the reference over its span, and
    each page of a document.

    Raises:
        TooLarge: more than MAX_TICKS of them.
    """
    if not len(reference.times):
        return ()
    if reference.name == "document":
        return tuple(int(item) for item in np.unique(reference.times))
    first, last = int(reference.times[0]), int(reference.times[-1])
    ticks = ticks_over(TARGETS[reference.name].rate_hz, first, last)
    if ticks.count > MAX_TICKS:
        raise TooLarge(
            f"the recording has {ticks.count} ticks, more than {MAX_TICKS}",
            remedy="Split the recording.",
        )
    return ticks


def write_ticks(
    input_id: str,
    reference: ReadTrack,
    compared: Mapping[str, Compared],
    *,
    writer: StageWriter | None,
    clock: Clock,
) -> Ticked:
    """Decide every tick; one event each where there is a log.

    Raises:
        FileRefused: `<track>-gap`, where a track that may have no gap has one.
    """
    ticked, refused = Ticked(), None
    tracks = {name: _stamps(item) for name, item in compared.items()}
    rules = {name: item.track.rule for name, item in compared.items()}
    started_ns = clock.monotonic_ns()
    for tick_ns, row in align(tick_moments(reference), tracks, rules):
        for name, found in row.items():
            ticked.add(name, found.outcome)
            if found.outcome is Outcome.REFUSED and refused is None:
                refused = name, tick_ns
        if writer is not None:
            now_ns = clock.monotonic_ns()
            _write(writer, input_id, (tick_ns, row), compared, (now_ns - started_ns) / NS_PER_MS)
            started_ns = now_ns
    if refused is not None:
        name, tick_ns = refused
        raise FileRefused(
            f"{name}-gap", f"the track {name} has nothing at {to_ms(tick_ns):.0f} ms, and may "
            "have no gap",
        )  # fmt: skip
    return ticked


def _stamps(compared: Compared) -> Iterator[Stamp]:
    """The track's items on the common base, as repaired."""
    for index, ts_ns in enumerate(compared.track.times.tolist()):
        moved = compared.correction.apply(ts_ns)
        if moved is not None:
            yield Stamp(moved, index)


def _write(
    writer: StageWriter,
    input_id: str,
    tick: tuple[int, Mapping[str, Placement]],
    compared: Mapping[str, Compared],
    spent_ms: float,
) -> None:
    tick_ns, row = tick
    there = {name: found for name, found in row.items() if found.outcome in _THERE}
    offsets = {name: item.observed_ms(tick_ns) for name, item in compared.items()}
    writer.record(
        input_id,
        processing_ms=spent_ms,
        aligned_ts_ms=to_ms(tick_ns),
        observed_offsets_ms={name: ms for name, ms in offsets.items() if ms is not None},
        feature_dims={name: compared[name].track.dims for name in there},
        alignment=Alignment(
            items={name: found.first for name, found in there.items() if found.first is not None},
            residual_offsets_ms={
                name: to_ms((found.offset_ns or 0) + compared[name].left_ns(tick_ns))
                for name, found in there.items()
            },
            outcomes={name: found.outcome.value for name, found in row.items()},
        ),
    )
