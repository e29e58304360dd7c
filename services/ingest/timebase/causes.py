"""Suspected causes: rules over what was observed, each named by a code, with its evidence.

start-offset  one offset from the first item to the last: a late start, a wrong delay setting
clock-rate    an offset that grows evenly: two clocks, `ppm` apart
step          another offset from one moment on: a resync, a lost or a doubled buffer
gap           items that never came: lost frames, `missing` of them
burst         items that came late and all at once: a buffer that was held up, `late` of them
reordered     items that came behind later ones: several senders, or a broken queue
impossible    times that no clock gives: the decoder's own words, by code, counted
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from services.ingest.timebase.course import Drift, Stretch
from services.ingest.timebase.stamps import Hole, StampFacts
from services.ingest.timebase.ticks import to_ms

CONTENT, TIMESTAMPS = "content", "timestamps"
NEAR_NS = 1_000_000_000
"""A hole this close to a step is its evidence."""

Evidence = tuple[tuple[str, float | str], ...]


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a track is suspected to be out of step, on the common base.

    `until_ns` is None where it goes on to the end. `offset_ns` (negative: the track lags) and
    `within_ns` are None where the cause moves nothing (a gap).
    """

    code: str
    from_ns: int
    until_ns: int | None
    offset_ns: int | None
    within_ns: int | None
    observed_in: str  # CONTENT or TIMESTAMPS
    evidence: Evidence = ()


def causes_of_stretches(
    stretches: tuple[Stretch, ...], moment: Iterable[tuple[int, int, int]], facts: StampFacts | None
) -> Iterator[Cause]:
    """One cause a stretch; `moment` are its likeliest, earliest and latest start in ns."""
    starts = list(moment)
    for at, (stretch, (start, low, high)) in enumerate(zip(stretches, starts, strict=True)):
        if not at and abs(stretch.seen.offset_ns) <= stretch.seen.within_ns:
            continue  # in step, as far as anyone can tell
        evidence: Evidence = (("p_value", _short(stretch.seen.p_value)),)
        if at:
            evidence += (("earliest_ms", to_ms(low)), ("latest_ms", to_ms(high)))
            evidence += _near_hole(start, facts)
        yield Cause(
            code="step" if at else "start-offset",
            from_ns=start,
            until_ns=starts[at + 1][0] if at + 1 < len(starts) else None,
            offset_ns=stretch.seen.offset_ns,
            within_ns=stretch.seen.within_ns,
            observed_in=CONTENT,
            evidence=evidence,
        )


def cause_of_drift(drift: Drift, start_ns: int) -> Cause:
    return Cause(
        "clock-rate", start_ns, None, drift.offset_ns, drift.within_ns, CONTENT,
        (("ppm", drift.rate_ppb / 1000), ("ppm_low", drift.low_ppb / 1000),
         ("ppm_high", drift.high_ppb / 1000), ("p_value", _short(drift.p_value))),
    )  # fmt: skip


def causes_of_stamps(facts: StampFacts) -> Iterator[Cause]:
    """Holes, bursts and disorder: what time stamps show without a second track."""
    for hole in facts.holes:
        yield _cause_of_hole(hole)
    if facts.reordered and facts.reordered_at_ns is not None:
        yield Cause(
            "reordered", facts.reordered_at_ns, None, None, None, TIMESTAMPS,
            (("items", float(facts.reordered)), ("first_item", float(facts.first_reordered or 0))),
        )  # fmt: skip


def _cause_of_hole(hole: Hole) -> Cause:
    code = "burst" if hole.late else "gap"
    evidence: Evidence = (("missing", float(hole.missing)),)
    if hole.late:
        evidence += (("late", float(hole.late)),)
    return Cause(code, hole.from_ns, hole.until_ns, None, None, TIMESTAMPS, evidence)


def _near_hole(start_ns: int, facts: StampFacts | None) -> Evidence:
    for hole in facts.holes if facts else ():
        if abs(hole.from_ns - start_ns) <= NEAR_NS:
            return (("hole_at_ms", to_ms(hole.from_ns)), ("missing", float(hole.missing)))
    return ()


def _short(value: float) -> float:
    return float(f"{value:.2g}")
