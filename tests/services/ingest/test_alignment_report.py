from __future__ import annotations

import io
import itertools
import json
import tracemalloc
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from services.ingest.alignment_log import (
    Alignment,
    AlignmentEvent,
    AlignmentLog,
    StageWriter,
    SuspectedCause,
    event_line,
)
from services.ingest.alignment_reader import MAX_LINE_BYTES, BadLine, alignment_schema, read_events
from services.ingest.alignment_report import MAX_LOSSES, Report, read_report

CAUSE = SuspectedCause("audio", "step", 800.0, None, -128.0, 20.0, "content", (("p_value", 1e-9),))


def tick(number: int, offset_ms: float | None, **alignment: Any) -> AlignmentEvent:
    observed = () if offset_ms is None else (("audio", offset_ms),)
    return AlignmentEvent(
        input_id="clip", modalities=("audio",), aligned_ts_ms=40.0 * number,
        observed_offsets_ms=observed, processing_ms=0.1, feature_dims=(("audio", (13,)),),
        pipeline_stage="align", alignment=Alignment(**alignment),
    )  # fmt: skip


def report(events: Iterable[AlignmentEvent], **options: bool) -> Report:
    return read_report(io.BytesIO(b"".join(map(event_line, events))), **options)


def test_what_is_written_is_what_the_published_schema_describes() -> None:
    stream = io.BytesIO()
    writer = StageWriter(AlignmentLog(stream), "observe", "trace")
    writer.record("clip", processing_ms=1.5, feature_dims={"video": (96, 128, 3)},
                  alignment=Alignment(tolerances_ms={"video": 33.0}, causes=(CAUSE,)))  # fmt: skip
    stream.write(event_line(tick(3, -128, items={"audio": 12}, outcomes={"audio": "taken"})))
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(alignment_schema())
    lines = stream.getvalue().splitlines()
    for line in lines:
        validator.validate(json.loads(line))
    assert not validator.is_valid({**json.loads(lines[0]), "schema_version": 2})
    assert [isinstance(found, BadLine) for found in read_events(io.BytesIO(stream.getvalue()))] == [
        False, False,
    ]  # fmt: skip


GOOD = json.loads(event_line(tick(0, 1.0)))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"not json", "not one JSON object"),
        (b"[]", "Expected `object`"),
        (b"{}", "missing required field"),
        (json.dumps({**GOOD, "schema_version": 2}).encode(), "schema_version"),
        (json.dumps({**GOOD, "event_id": "sha256:0"}).encode(), "event_id"),
        (json.dumps({**GOOD, "observed_offsets_ms": {"audio": "x"}}).encode(), "Expected `float`"),
        (json.dumps({**GOOD, "processing_ms": -1}).encode(), "processing_ms"),
        (json.dumps({**GOOD, "secret": "Ada Lovelace"}).encode(), "a key too many"),
        (b'{"aligned_ts_ms": NaN}', "not one JSON object"),
        (b"\xff\xfe", "not one JSON object"),
        (b"x" * (MAX_LINE_BYTES + 10), "more than"),
    ],
)
def test_a_line_that_is_no_event_is_named_with_its_reason(line: bytes, reason: str) -> None:
    good = event_line(tick(0, 1.0))
    found = list(read_events(io.BytesIO(good + b"\n" + line + b"\n" + good)))
    bad = found[1]
    assert isinstance(bad, BadLine)
    assert (bad.number, len(found)) == (3, 3)
    assert reason in bad.reason
    assert "Ada" not in bad.reason


def test_a_loss_takes_the_cause_that_the_writer_saw() -> None:
    observe = AlignmentEvent("clip", (), None, (), 0.0, (), "observe", "",
                             Alignment(tolerances_ms={"audio": 40.0}, causes=(CAUSE,)))  # fmt: skip
    ticks = [tick(number, 0.0 if number < 20 else -128.0) for number in range(50)]
    (found,) = report([observe, *ticks]).losses
    assert (found.code, found.observed_in, dict(found.evidence)) == (
        "step", "content", {"p_value": 1e-9},
    )  # fmt: skip
    assert (found.loss.first_tick, found.loss.from_ms, found.loss.until_ms) == (20, 800, 1960)


def test_a_loss_that_nobody_explained_is_judged_by_its_run() -> None:
    (found,) = report([tick(number, -128.0) for number in range(9)]).losses
    assert (found.code, found.observed_in) == ("start-offset", "log")


def test_the_tolerance_is_that_of_the_log_else_of_the_target() -> None:
    assert report([tick(0, -39.0)]).losses == []
    assert len(report([tick(0, -41.0)]).losses) == 1
    wide = tick(0, -41.0, tolerances_ms={"audio": 60.0})
    assert report([wide]).losses == []


def test_what_was_repaired_is_in_step_when_the_rest_is_judged() -> None:
    repaired = [
        tick(n, -128.0, residual_offsets_ms={"audio": 3.0}, outcomes={"audio": "taken"})
        for n in range(9)
    ]
    (found,) = report(repaired).losses
    assert found.loss.repaired
    assert report(repaired, residual=True).losses == []
    left = [
        tick(n, -128.0, residual_offsets_ms={"audio": -120.0}, outcomes={"audio": "taken"})
        for n in range(9)
    ]
    (found,) = report(left, residual=True).losses
    assert not found.loss.repaired


def test_offsets_are_summed_up_by_track() -> None:
    found = report([tick(0, -10.0), tick(1, 20.0), tick(2, None, outcomes={"audio": "dropped"})])
    summary = found.tracks["audio"].document()
    assert summary == {
        "ticks": 3, "observed": 2, "lost": 1, "least_ms": -10.0, "most_ms": 20.0, "mean_ms": 5.0,
        "outcomes": {"dropped": 1}, "observed_in": {},
    }  # fmt: skip


class Endless(io.RawIOBase):
    """Lines made as they are read."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines

    def readline(self, size: int | None = -1, /) -> bytes:
        return next(self._lines, b"")


def test_memory_does_not_grow_with_the_log() -> None:
    def lines(count: int) -> Iterator[bytes]:
        calm, off = (
            event_line(tick(0, value)).replace(b'"aligned_ts_ms":0', b'"aligned_ts_ms":%d')
            for value in (0.0, -128.0)
        )
        for number in range(count):
            yield (off if number % 8 < 4 else calm) % number

    def peak(count: int) -> int:
        tracemalloc.start()
        found = read_report(Endless(lines(count)))  # type: ignore[arg-type]  # readline is all
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found.loss_count == count // 8
        return size

    peak(1000)
    assert peak(20_000) < peak(8800) * 1.2
    assert MAX_LOSSES < 8800 // 8


def test_losses_beyond_the_bound_are_counted() -> None:
    gaps = itertools.cycle([True] * 5 + [False] * 5)
    found = report(tick(n, -99.0 if next(gaps) else 0.0) for n in range(10 * (MAX_LOSSES + 7)))
    assert (len(found.losses), found.loss_count) == (MAX_LOSSES, MAX_LOSSES + 7)
