from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest import manifest
from services.ingest.manifest import MAX_LINE_BYTES, Row, TrackSource, parse_line, read_rows
from validators.contracts.dataset import Unreadable
from validators.contracts.errors import TooLarge

GOOD = {"id": "cat", "image": "media/cat.png", "text": "a cat", "tags": {"sensor": "camera"}}


def rows(*lines: bytes) -> list[Row | Unreadable]:
    return list(read_rows(io.BytesIO(b"\n".join(lines))))


def line(**changes: Any) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


def recording(**changes: Any) -> bytes:
    return json.dumps(
        {"id": "clip", "video": "a.mp4", "tags": {"sensor": "camera"}} | changes
    ).encode()


def test_a_recording_has_its_tracks_with_what_is_said_about_their_time() -> None:
    said = {"audio": {"start_ms": -128.0}, "document": {"page_times_ms": [0, 40.0]}}
    (row,) = rows(recording(document="a.pdf", audio="a.wav", tracks=said))
    assert isinstance(row, Row)
    assert row.files == ()
    assert row.tracks == (
        TrackSource("video", "a.mp4"),
        TrackSource("audio", "a.wav", -128.0),
        TrackSource("document", "a.pdf", None, (0.0, 40.0)),
    )


def test_the_sound_of_a_video_may_be_spoken_of_without_a_file_of_its_own() -> None:
    (row,) = rows(recording(tracks={"audio": {"start_ms": 128}}))
    assert isinstance(row, Row)
    assert row.tracks == (TrackSource("video", "a.mp4"), TrackSource("audio", "a.mp4", 128.0))


def test_a_good_line_becomes_a_row() -> None:
    (row,) = rows(line(captured_ms=40))
    assert row == Row(
        1, "cat", (("image", "media/cat.png"),), "a cat", 40.0, (("sensor", "camera"),)
    )


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (b"{", "bad-line"),
        (b"[1, 2]", "bad-line"),
        (b'"cat"', "bad-line"),
        (b"\xff\xfe{}", "bad-line"),
        (b"[" * 60_000, "bad-line"),
        (b'{"id": "a", "id": "b", "text": "t", "tags": {"s": "c"}}', "bad-line"),
        (line(colour="red"), "bad-line"),
        (line(id=7), "bad-line"),
        (line(id=""), "bad-line"),
        (line(tags={}), "bad-line"),
        (line(tags={"sensor": 3}), "bad-line"),
        (line(captured_ms=-1), "bad-line"),
        (line(captured_ms="now"), "bad-line"),
        (line(captured_ms=1).replace(b": 1,", b": NaN,").replace(b": 1}", b": NaN}"), "bad-line"),
        (line(id="../cat"), "bad-id"),
        (line(id="a b"), "bad-id"),
        (line(id="_hidden"), "bad-id"),
        (line(image=None, text=None), "no-media"),
        (line(tags={"sensor": "x" * 300}), "bad-tags"),
        (line(video="a.mp4"), "mixed-row"),
        (line(image=None, text=None, video=7), "bad-line"),
        (line(tracks={"audio": {"start_ms": 1}}), "bad-tracks"),
        (recording(tracks={"sensors": {"start_ms": 1}}), "bad-tracks"),
        (recording(tracks={"smell": {"start_ms": 1}}), "bad-tracks"),
        (recording(tracks={"video": {"page_times_ms": [1]}}), "bad-tracks"),
        (recording(document="a.pdf", tracks={"document": {"page_times_ms": [2, 1]}}), "bad-tracks"),
        (recording(tracks={"video": {"start": 1}}), "bad-line"),
        (recording(tracks={"video": {"start_ms": "soon"}}), "bad-line"),
        (line(text="x" * MAX_LINE_BYTES), "line-too-long"),
    ],
)
def test_a_bad_line_is_listed_with_a_stable_reason(written: bytes, reason: str) -> None:
    first, second = rows(written, line(id="dog"))
    assert isinstance(first, Unreadable)
    assert first.reason == reason
    assert isinstance(second, Row), "the next line is read all the same"


def test_what_was_written_there_is_not_repeated() -> None:
    (row,) = rows(line(captured_ms="Eileen Collins", **{"Eileen": 1}))
    assert isinstance(row, Unreadable)
    assert "Eileen" not in row.detail


def test_a_repeated_id_keeps_the_first_and_lists_the_others() -> None:
    found = rows(line(), line(text="another cat"), line())
    assert isinstance(found[0], Row)
    assert [item.reason for item in found[1:] if isinstance(item, Unreadable)] == [
        "duplicate-id", "duplicate-id",
    ]  # fmt: skip


def test_ids_that_look_alike_are_one_id() -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    assert isinstance(rows(line(id=composed), line(id=decomposed))[1], Unreadable)


def test_blank_lines_are_no_rows() -> None:
    assert len(rows(b"", line(), b"   ", b"")) == 1


def test_a_manifest_of_too_many_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "MAX_ROWS", 2)
    with pytest.raises(TooLarge):
        rows(*(line(id=f"cat{index}") for index in range(3)))


@given(st.binary(max_size=300))
def test_no_line_raises(data: bytes) -> None:
    assert isinstance(parse_line(data, 1), Row | Unreadable)
