"""From an alignment log to where sync was lost: each loss with its suspected cause, and summaries.

One pass, and memory that does not grow with the file: what is kept is bounded, what is beyond is
counted.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from services.ingest.alignment_reader import BadLine, Line, Suspect, read_events
from services.ingest.timebase.losses import Loss, LossFinder, Moment
from services.ingest.timebase.rule import TARGETS

MAX_LOSSES = 1000
MAX_BAD_LINES = 50
MAX_INPUTS = 4096
"""Inputs whose causes and tolerances are remembered at once."""
MAX_TRACKS = 256
OTHER_TOLERANCE_MS = 40.0
"""Of a track that neither the log nor the platform declares a tolerance for."""
TICK_STAGE = "align"


@dataclass(frozen=True, slots=True)
class FoundLoss:
    """A loss and why: the cause that the log's writer saw, or else what the run looks like."""

    loss: Loss
    code: str
    observed_in: str  # "content", "timestamps" or "log"
    evidence: tuple[tuple[str, float | str], ...]


@dataclass(slots=True)
class TrackSummary:
    """A track over all inputs: offsets are of those ticks at which one was observed.

    `observed_in` counts the inputs by what their offset was observed in.
    """

    ticks: int = 0
    observed: int = 0
    lost: int = 0
    least_ms: float = math.inf
    most_ms: float = -math.inf
    mean_ms: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    observed_in: Counter[str] = field(default_factory=Counter)

    def add(self, offset_ms: float | None, outcome: str | None) -> None:
        self.ticks += 1
        if outcome is not None:
            self.outcomes[outcome] += 1
        if offset_ms is None:
            return
        self.observed += 1
        self.least_ms, self.most_ms = min(self.least_ms, offset_ms), max(self.most_ms, offset_ms)
        self.mean_ms += (offset_ms - self.mean_ms) / self.observed

    def document(self) -> dict[str, Any]:
        seen = self.observed > 0
        return {
            "ticks": self.ticks,
            "observed": self.observed,
            "lost": self.lost,
            "least_ms": round(self.least_ms, 3) if seen else None,
            "most_ms": round(self.most_ms, 3) if seen else None,
            "mean_ms": round(self.mean_ms, 3) if seen else None,
            "outcomes": dict(sorted(self.outcomes.items())),
            "observed_in": dict(sorted(self.observed_in.items())),
        }


@dataclass(slots=True)
class Report:
    """What a log says. `losses` and `bad_lines` are the first ones; the counts are of all."""

    events: int = 0
    stages: Counter[str] = field(default_factory=Counter)
    tracks: dict[str, TrackSummary] = field(default_factory=dict)
    losses: list[FoundLoss] = field(default_factory=list)
    loss_count: int = 0
    bad_lines: list[BadLine] = field(default_factory=list)
    bad_count: int = 0

    def track(self, name: str) -> TrackSummary:
        if name not in self.tracks and len(self.tracks) >= MAX_TRACKS:
            name = "other tracks"
        return self.tracks.setdefault(name, TrackSummary())


@dataclass(slots=True)
class _Input:
    ticks: int = 0
    tolerances: dict[str, float] = field(default_factory=dict)
    causes: list[Suspect] = field(default_factory=list)


def read_report(stream: BinaryIO, *, residual: bool = False) -> Report:
    """The report of a log. `residual` judges what is left after repair, not what was recorded."""
    report, finder = Report(), LossFinder()
    inputs: OrderedDict[str, _Input] = OrderedDict()
    for found in read_events(stream):
        if isinstance(found, BadLine):
            report.bad_count += 1
            if len(report.bad_lines) < MAX_BAD_LINES:
                report.bad_lines.append(found)
            continue
        _, line = found
        report.events += 1
        stage = line.pipeline_stage
        report.stages[stage if len(report.stages) < MAX_TRACKS else "other stages"] += 1
        known = _remember(inputs, line)
        for track, source in line.observed_in.items():
            report.track(track).observed_in[source] += 1
        if stage == TICK_STAGE or line.observed_offsets_ms:
            for moment in _moments(line, known, residual=residual):
                report.track(moment.track).add(moment.offset_ms, line.outcomes.get(moment.track))
                for loss in finder.add(moment):
                    _keep(report, loss, inputs)
            known.ticks += 1
    for loss in finder.finish():
        _keep(report, loss, inputs)
    return report


def _remember(inputs: OrderedDict[str, _Input], line: Line) -> _Input:
    known = inputs.setdefault(line.input_id, _Input())
    inputs.move_to_end(line.input_id)
    if len(inputs) > MAX_INPUTS:
        inputs.popitem(last=False)
    known.tolerances |= line.tolerances_ms
    known.causes += line.causes[: MAX_LOSSES - len(known.causes)]
    return known


def _moments(line: Line, known: _Input, *, residual: bool) -> Iterator[Moment]:
    """One for each track that the line speaks of."""
    for track in sorted({*line.observed_offsets_ms, *line.outcomes}):
        tolerance = _tolerance(known.tolerances, track)
        outcome = line.outcomes.get(track)
        judged = outcome is None or outcome in ("taken", "interpolated")
        left = line.residual_offsets_ms.get(track) if judged else None
        yield Moment(
            input_id=line.input_id,
            track=track,
            number=known.ticks,
            ts_ms=line.aligned_ts_ms or 0.0,
            offset_ms=left if residual else line.observed_offsets_ms.get(track),
            tolerance_ms=tolerance,
            absent=outcome in ("dropped", "refused"),
            repaired=None if left is None else abs(left) <= tolerance,
            item=line.items.get(track),
        )


def _tolerance(stated: Mapping[str, float], track: str) -> float:
    target = TARGETS.get(track)
    return stated.get(track, target.tolerance_ms if target else OTHER_TOLERANCE_MS)


def _keep(report: Report, loss: Loss, inputs: Mapping[str, _Input]) -> None:
    report.loss_count += 1
    report.track(loss.track).lost += loss.ticks
    if len(report.losses) < MAX_LOSSES:
        known = inputs.get(loss.input_id)
        report.losses.append(_explained(loss, known.causes if known else []))


_CODES: Mapping[str, frozenset[str]] = {
    "offset": frozenset({"start-offset", "clock-rate", "step"}),
    "gap": frozenset({"gap", "burst", "impossible"}),
}


def _explained(loss: Loss, causes: list[Suspect]) -> FoundLoss:
    """The latest suspected cause of this track and kind that had begun when the loss ended."""
    fitting = [
        cause
        for cause in causes
        if cause.track == loss.track
        and cause.code in _CODES[loss.kind]
        and cause.from_ms <= loss.until_ms
        and (cause.until_ms is None or cause.until_ms >= loss.from_ms)
    ]
    if fitting:
        cause = max(fitting, key=lambda item: (min(item.from_ms, loss.from_ms), item.from_ms))
        return FoundLoss(loss, cause.code, cause.observed_in, tuple(cause.evidence.items()))
    evidence = () if loss.rate_ppm is None else (("ppm", loss.rate_ppm),)
    return FoundLoss(loss, loss.shape, "log", evidence)
