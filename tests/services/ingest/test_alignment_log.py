from __future__ import annotations

import dataclasses
import io
import json

from services.ingest.alignment_log import AlignmentEvent, AlignmentLog

EVENT = AlignmentEvent(
    input_id="cat",
    modalities=("audio", "image"),
    aligned_ts_ms=1200.0,
    observed_offsets_ms=(("audio", -128.0), ("image", 42.0)),
    processing_ms=3.25,
    feature_dims=(("audio", (16_000,)), ("image", (300, 451, 3))),
    pipeline_stage="ingest",
    trace_id="abc",
)


def test_an_event_is_one_json_line() -> None:
    stream = io.BytesIO()
    log = AlignmentLog(stream)
    log.write(EVENT)
    log.write_all([EVENT, EVENT])
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    assert json.loads(lines[0]) == {
        "event_id": EVENT.event_id,
        "input_id": "cat",
        "modalities": ["audio", "image"],
        "aligned_ts_ms": 1200,
        "observed_offsets_ms": {"audio": -128, "image": 42},
        "processing_ms": 3.25,
        "feature_dims": {"audio": [16000], "image": [300, 451, 3]},
        "pipeline_stage": "ingest",
        "trace_id": "abc",
        "schema_version": 1,
    }


def test_an_event_is_named_by_what_happened_and_not_by_how_fast_or_in_which_trace() -> None:
    again = dataclasses.replace(EVENT, processing_ms=99.0, trace_id="other")
    assert again.event_id == EVENT.event_id
    for change in (
        {"input_id": "dog"},
        {"pipeline_stage": "deidentify"},
        {"observed_offsets_ms": ()},
        {"aligned_ts_ms": None},
    ):
        assert dataclasses.replace(EVENT, **change).event_id != EVENT.event_id
