"""What is wrong between a track and the reference, and how its clock has to be moved.

What both tracks show outweighs what their time stamps say: a recording may begin late and be in
step, or carry perfect times and show the wrong moment. An offset seen in content is repaired by a
correction. One seen in time stamps (a late start, a clock that runs fast) is what pairing items by
their number would suffer; it is repaired already by placing each item at its own time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from services.ingest.timebase.activity import BIN_NS, Activity, on_grid
from services.ingest.timebase.causes import (
    CONTENT,
    TIMESTAMPS,
    Cause,
    Evidence,
    cause_of_drift,
    causes_of_stamps,
    causes_of_stretches,
)
from services.ingest.timebase.correction import NO_CORRECTION, Correction, Piece
from services.ingest.timebase.course import Drift, Stretch, follow
from services.ingest.timebase.stamps import StampFacts, Times, read_stamps
from services.ingest.timebase.ticks import to_ms

MAX_START_NS = 2_000_000_000
"""A track that begins later than this is missing at first, not out of step."""
MIN_RATE_DRIFT_NS = 1_000_000
"""A rate error that moves nothing by this much over the whole track is not spoken of."""
MAX_BINS = 8 * 3600 * 100
"""Eight hours of activity; what is longer is compared by its first eight hours."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one track: its times on the common base by their stamps, in the order in
    which the items came, its nominal period, and its activity where it has any.

    `shared_start` is False for a track whose first item says nothing about its clock: messages and
    pages come when they come.
    """

    times: Times
    period_ns: int | None
    activity: Activity | None = None
    shared_start: bool = True


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`offsets` are what was observed, as pieces over the common base; () where nothing was.

    `observed_in` says by what: "content", "timestamps" or "". `correction` is what aligns it.
    """

    offsets: tuple[Piece, ...]
    observed_in: str
    within_ns: int | None
    correction: Correction
    causes: tuple[Cause, ...]
    facts: StampFacts | None

    def offset_at(self, common_ns: int) -> int | None:
        """The observed offset at a moment of the common base; None where nobody could tell."""
        return Correction(self.offsets).offset_at(common_ns) if self.offsets else None


def diagnose(reference: Seen, track: Seen) -> Diagnosis:
    """Compare a track with the reference by content and by time stamps."""
    own = read_stamps(track.times, track.period_ns)
    theirs = read_stamps(reference.times, reference.period_ns)
    found: tuple[Stretch, ...] | Drift = ()
    start_ns = 0
    if reference.activity is not None and track.activity is not None:
        start_ns, found = _compare(reference, track)
    if isinstance(found, Drift) or found:
        return _by_content(found, start_ns, own)
    return _by_stamps(own, theirs, track)


def diagnose_reference(reference: Seen) -> Diagnosis:
    """The reference by itself: it is in step with itself, and may have holes."""
    facts = read_stamps(reference.times, reference.period_ns)
    causes = tuple(causes_of_stamps(facts)) if facts else ()
    return Diagnosis((Piece(0, 0),), TIMESTAMPS, 0, NO_CORRECTION, causes, facts)


def _compare(reference: Seen, track: Seen) -> tuple[int, tuple[Stretch, ...] | Drift]:
    first, second = reference.activity, track.activity
    if first is None or second is None or not (len(first.times_ns) and len(second.times_ns)):
        return 0, ()
    start = int(min(first.times_ns[0], second.times_ns[0]))
    end = int(max(first.times_ns[-1], second.times_ns[-1]))
    bins = min(MAX_BINS, (end - start) // BIN_NS + 1)
    coarse = max(_spacing(first), _spacing(second))
    courses = [on_grid(item, start, bins) for item in (first, second)]
    return start, follow(*courses, resolution_ns=coarse // 2)


def _spacing(activity: Activity) -> int:
    return int(np.median(np.diff(activity.times_ns))) if len(activity.times_ns) > 1 else 0


def _by_content(
    found: tuple[Stretch, ...] | Drift, start_ns: int, facts: StampFacts | None
) -> Diagnosis:
    stamped = tuple(causes_of_stamps(facts)) if facts else ()
    if isinstance(found, Drift):
        line = Piece(start_ns, found.offset_ns, found.rate_ppb)
        cause = cause_of_drift(found, start_ns)
        moves = Correction((Piece(start_ns - found.offset_ns, found.offset_ns, found.rate_ppb),))
        return Diagnosis((line,), CONTENT, found.within_ns, moves, (cause, *stamped), facts)
    moments = [
        tuple(start_ns + BIN_NS * item for item in (each.start, each.start_low, each.start_high))
        for each in found
    ]
    causes = causes_of_stretches(found, [(a, b, c) for a, b, c in moments], facts)
    observed = tuple(
        Piece(moment[0], each.seen.offset_ns) for each, moment in zip(found, moments, strict=True)
    )
    moves = Correction(
        tuple(Piece(item.from_ns - item.offset_ns, item.offset_ns) for item in observed)
    )
    within = max(each.seen.within_ns for each in found)
    return Diagnosis(observed, CONTENT, within, moves, (*causes, *stamped), facts)


def _by_stamps(own: StampFacts | None, theirs: StampFacts | None, track: Seen) -> Diagnosis:
    if own is None or theirs is None:
        return Diagnosis((), "", None, NO_CORRECTION, (), own)
    causes: list[Cause] = list(causes_of_stamps(own))
    start = own.first_ns - theirs.first_ns
    if not track.shared_start or track.period_ns is None:
        return Diagnosis((), "", None, NO_CORRECTION, tuple(causes), own)
    if start > MAX_START_NS:
        evidence = (("missing", float(start // track.period_ns)),)
        causes.insert(0, Cause("gap", theirs.first_ns, own.first_ns, None, None, TIMESTAMPS,
                               evidence))  # fmt: skip
    if abs(start) > MAX_START_NS:
        return Diagnosis((), "", None, NO_CORRECTION, tuple(causes), own)
    rate = _rate(own)
    observed = Piece(own.first_ns, -start, -rate)
    causes[:0] = _stamped_causes(observed, own, theirs)
    return Diagnosis((observed,), TIMESTAMPS, 0, NO_CORRECTION, tuple(causes), own)


def _rate(facts: StampFacts) -> int:
    """The certain part of the rate error in parts per billion, 0 where it moves nothing."""
    rate = facts.rate
    if rate is None or not rate.certain:
        return 0
    moved = abs(rate.ppb) * (facts.last_ns - facts.first_ns) // 1_000_000_000
    return rate.ppb if moved >= MIN_RATE_DRIFT_NS else 0


def _stamped_causes(piece: Piece, own: StampFacts, theirs: StampFacts) -> Iterator[Cause]:
    if piece.offset_ns:
        evidence: Evidence = (
            ("start_ms", to_ms(own.first_ns)), ("reference_start_ms", to_ms(theirs.first_ns)),
        )  # fmt: skip
        yield Cause("start-offset", own.first_ns, None, piece.offset_ns, 0, TIMESTAMPS, evidence)
    if piece.rate_ppb and own.rate is not None:
        evidence = (("ppm", piece.rate_ppb / 1000), ("ppm_low", -own.rate.high_ppb / 1000),
                    ("ppm_high", -own.rate.low_ppb / 1000))  # fmt: skip
        yield Cause("clock-rate", own.first_ns, None, piece.offset_ns, 0, TIMESTAMPS, evidence)
