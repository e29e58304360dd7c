"""What is out of step in a recording, what is done about it, and what the log is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from services.ingest.alignment_log import SuspectedCause
from services.ingest.enclosure import FileRefused
from services.ingest.recording.plan import REFERENCES, IngestPlan
from services.ingest.recording.tracks import ReadTrack
from services.ingest.timebase.causes import CONTENT, TIMESTAMPS, Cause
from services.ingest.timebase.correction import NO_CORRECTION, Correction
from services.ingest.timebase.diagnosis import Diagnosis, diagnose, diagnose_reference
from services.ingest.timebase.ticks import NS_PER_MS, to_ms, to_ns
from validators.contracts.modality import Gap

MAX_CAUSES = 64
"""Of each track, in the log."""

_OF_TIME = {
    "backwards-step": "impossible", "timezone-jump": "impossible", "leap-second": "impossible",
    "missing-timestamp": "impossible", "duplicate-timestamp": "impossible",
    "late-frame": "reordered", "out-of-order": "reordered",
    "audio-gap": "gap", "audio-overlap": "step",
}  # fmt: skip
"""A decoder's word about time to the cause that it stands for."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A track beside the reference. `correction` is NO_CORRECTION where nothing is to be moved.

    `out_of_step` says that an offset beyond the tolerance was observed; `left_ns` what of it stays.
    """

    track: ReadTrack
    diagnosis: Diagnosis
    correction: Correction
    out_of_step: bool

    def observed_ms(self, common_ns: int) -> float | None:
        offset = self.diagnosis.offset_at(common_ns)
        return None if offset is None else to_ms(offset)

    def left_ns(self, common_ns: int) -> int:
        """What repair does not take away: an offset in content that was left as it is."""
        if self.diagnosis.observed_in != CONTENT or self.correction is not NO_CORRECTION:
            return 0
        return self.diagnosis.offset_at(common_ns) or 0


def reference_of(tracks: Sequence[ReadTrack]) -> ReadTrack:
    """The track that the others are put in step with."""
    return min(tracks, key=lambda track: REFERENCES.index(track.name))


def compare(tracks: Sequence[ReadTrack], plan: IngestPlan) -> Mapping[str, Compared]:
    """Every track by its name.

    Raises:
        FileRefused: `<track>-out-of-step`, `<track>-impossible-times`: not acceptable by policy.
        `<track>-outside-recording`: nothing of it is at the time of the reference.
    """
    reference = reference_of(tracks)
    return {track.name: _compare(reference, track, plan) for track in tracks}


def _compare(reference: ReadTrack, track: ReadTrack, plan: IngestPlan) -> Compared:
    if track is reference:
        return Compared(track, diagnose_reference(track.seen), NO_CORRECTION, out_of_step=False)
    _require_overlap(reference, track)
    found = diagnose(reference.seen, track.seen)
    worst = _worst(found, reference)
    lost = worst > track.rule.tolerance_ns
    if lost and (plan.refuses_offsets or track.rule.gap is Gap.REFUSE):
        raise FileRefused(
            f"{track.name}-out-of-step",
            f"the track {track.name} is off by up to {worst / NS_PER_MS:.0f} ms, more than its "
            f"tolerance of {track.rule.tolerance_ns / NS_PER_MS:g} ms",
        )
    moves = found.correction if lost and found.observed_in == CONTENT else NO_CORRECTION
    return Compared(track, found, moves, lost)


def require_possible(track: ReadTrack) -> None:
    """Raises FileRefused where the decoder met impossible times and the policy is to refuse."""
    codes = [code for code, _ in track.anomaly_counts if _OF_TIME.get(code) == "impossible"]
    if codes and track.rule.gap is Gap.REFUSE:
        raise FileRefused(
            f"{track.name}-impossible-times",
            f"the track {track.name} has times that no clock gives: {', '.join(codes)}",
        )


def _require_overlap(reference: ReadTrack, track: ReadTrack) -> None:
    if not (len(reference.times) and len(track.times)):
        return
    first, last = int(reference.times[0]), int(reference.times[-1])
    if reference.name == "document":  # the last page is the last for as long as anything goes on
        last = max(last, int(track.times[-1]))
    if not track.rule.periodic and track.rule.gap is Gap.HOLD:
        first -= track.rule.hold_ns  # a page that was shown before still shows
    if int(track.times[-1]) < first or int(track.times[0]) > last:
        raise FileRefused(
            f"{track.name}-outside-recording",
            f"the track {track.name} has nothing between {to_ms(first):.0f} and {to_ms(last):.0f} "
            f"ms; say where its zero is: tracks.{track.name}.start_ms, or captured_ms",
        )


def _worst(found: Diagnosis, reference: ReadTrack) -> int:
    """The largest offset that was observed at any moment of the reference."""
    ends = [int(reference.times[0]), int(reference.times[-1])] if len(reference.times) else [0]
    moments = [*ends, *(piece.from_ns for piece in found.offsets)]
    return max((abs(found.offset_at(moment) or 0) for moment in moments), default=0)


def seen_in(compared: Mapping[str, Compared], reference: ReadTrack) -> dict[str, str]:
    """By what each track's offset was observed, where it was."""
    return {
        name: "reference" if item.track is reference else item.diagnosis.observed_in
        for name, item in compared.items()
        if item.diagnosis.observed_in
    }


def suspected(compared: Compared) -> Iterator[SuspectedCause]:
    """The causes of a track for the log, the weightiest first, at most MAX_CAUSES."""
    name = compared.track.name
    listed = [_cause(name, cause) for cause in compared.diagnosis.causes]
    for anomaly in compared.track.anomalies:
        code = _OF_TIME.get(anomaly.code)
        if code is None or anomaly.ts_ms is None:
            continue
        at_ms = to_ms(to_ns(anomaly.ts_ms) + compared.track.shift_ns)
        evidence = (("anomaly", anomaly.code), ("index", float(anomaly.index)),
                    ("detail", anomaly.detail))  # fmt: skip
        listed.append(SuspectedCause(name, code, at_ms, at_ms, None, None, TIMESTAMPS, evidence))
    yield from listed[:MAX_CAUSES]


def _cause(name: str, cause: Cause) -> SuspectedCause:
    def ms(value: int | None) -> float | None:
        return None if value is None else to_ms(value)

    return SuspectedCause(
        track=name, code=cause.code, from_ms=to_ms(cause.from_ns), until_ms=ms(cause.until_ns),
        offset_ms=ms(cause.offset_ns), within_ms=ms(cause.within_ns),
        observed_in=cause.observed_in, evidence=cause.evidence,
    )  # fmt: skip
