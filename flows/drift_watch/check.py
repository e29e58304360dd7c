"""The drift of a service as it stands now: read only, nothing is told and nothing used up."""

from __future__ import annotations

from dataclasses import replace

from flows.drift_watch.gather import UNUSABLE, gather
from flows.drift_watch.judge import Look, judge
from flows.drift_watch.watched import Watched
from validators.contracts.errors import Undecided
from validators.watch.ready import ready_columns, samples_of

HOURS = 24.0


def check(watched: Watched, hours: float = HOURS) -> Look:
    """Judge what was recorded in the last hours, whether a watch has judged it before or not.

    A damaged window is named, and left for the watch to put aside and count.

    Raises:
        Undecided: too little was recorded to decide anything.
    """
    since_ms = watched.now_ms - round(hours * 3_600_000)
    found = gather(watched.windows, watched.bundle, (), watched.reference, since_ms=since_ms)
    minimum = watched.pipeline.gates.drift_minimum_samples
    columns = ready_columns(found.waiting, minimum, frozenset(samples_of(watched.reference)))
    if not columns:
        error = Undecided(
            f"{found.rows} recorded requests in {hours:g} hours are too few to judge drift by",
            where=watched.service,
            remedy=f"Wait for {minimum} of a kind, record a larger share (gates.drift.record), or "
            "look further back (--hours).",
        )
        error.attachment = {"service": watched.service, "findings": found.findings}
        raise error
    made = judge(watched, found.joined(columns), found.whole(), tuple(found.parts))
    return replace(made, findings=tuple(f for f in found.findings if f.code == UNUSABLE))
