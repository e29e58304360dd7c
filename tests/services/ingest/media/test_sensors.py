from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.ingest.media import Form, MediaLimits
from services.ingest.media.opening import open_tracks
from services.ingest.media.tracks import MediaTrack
from services.ingest.tracks import Item
from tests.services.ingest.media.recordings import opened
from validators.contracts.errors import BadInput, TooLarge


def write(path: Path, lines: list[Any]) -> Path:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def reading(ts: object, **values: float) -> dict[str, object]:
    return {"ts": ts, "values": values or {"ax": 0.5, "ay": -9.8}}


def read(
    path: Path, kind: str = "sensors", limits: MediaLimits | None = None
) -> tuple[MediaTrack, list[Item]]:
    (track,) = open_tracks(opened(path), kind, limits)
    return track, list(track.items())


def codes(track: MediaTrack) -> list[tuple[str, int]]:
    return [(found.code, found.index) for found in track.anomalies]


def test_readings_come_at_their_times_with_their_channels(tmp_path: Path) -> None:
    path = write(tmp_path / "a", [reading(5 * at, ax=at, ay=1) for at in range(100)])
    track, items = read(path)
    assert [item.ts_ms for item in items] == [5.0 * at for at in range(100)]
    assert items[7].value == {"ax": 7.0, "ay": 1.0}
    assert items[7].place == "line 8"
    assert (track.modality, track.period_ms, track.feature_dims) == ("imu", 5.0, (2,))
    assert dict(track.measures) == {"duration_ms": 495.0, "items": 100.0, "start_ms": 0.0}
    assert track.anomalies == ()


def test_texts_come_at_their_times_in_their_normal_form(tmp_path: Path) -> None:
    lines = [
        {"ts": "2026-11-30T10:00:00+01:00", "text": "door\r\nopens"},
        {"ts": "2026-11-30T10:00:00.2+01:00", "text": "门开了"},
    ]
    track, items = read(write(tmp_path / "a", lines), "events")
    assert [item.value for item in items] == ["door\nopens", "门开了"]
    assert items[1].ts_ms - items[0].ts_ms == pytest.approx(200)
    assert (track.modality, track.period_ms, track.feature_dims) == ("text", None, ())


def test_the_name_of_the_modality_can_be_given(tmp_path: Path) -> None:
    path = write(tmp_path / "a", [reading(0)])
    (track,) = open_tracks(opened(path), "sensors", None, Form(modality="pose"))
    assert track.modality == "pose"


def test_a_byte_order_mark_and_blank_lines_are_no_content(tmp_path: Path) -> None:
    path = write(tmp_path / "a", ["\ufeff" + json.dumps(reading(0)), "", json.dumps(reading(1))])
    assert [item.place for item in read(path)[1]] == ["line 1", "line 3"]


def test_a_step_back_is_left_out_and_named_and_nothing_is_sorted(tmp_path: Path) -> None:
    path = write(tmp_path / "a", [reading(at) for at in (0, 10, 5, 9, 10, 20)])
    track, items = read(path)
    assert [item.ts_ms for item in items] == [0, 10, 10, 20]
    assert codes(track) == [("backwards-step", 3), ("backwards-step", 4), ("repeated-time", 5)]


def test_a_zone_that_jumps_is_named(tmp_path: Path) -> None:
    lines = [
        reading("2026-10-25T02:59:59+02:00"),
        reading("2026-10-25T02:00:00+01:00"),  # the end of summer time: right, and a second later
        reading("2026-10-25T02:00:01+02:00"),  # a wrong zone: an hour back
        reading("2026-10-25T02:00:02+01:00"),
    ]
    track, items = read(write(tmp_path / "a", lines))
    assert [item.place for item in items] == ["line 1", "line 2", "line 4"]
    assert items[1].ts_ms - items[0].ts_ms == 1000
    assert codes(track) == [("timezone-jump", 2), ("timezone-jump", 3), ("backwards-step", 3)]
    assert [found.detail for found in track.anomalies][:2] == ["-60 minutes", "+60 minutes"]


@pytest.mark.parametrize(
    ("jump_ms", "said"),
    [(3_600_000, "+60 minutes"), (5.75 * 3_600_000, "+345 minutes"), (3_000_000, None)],
)  # fmt: skip
def test_a_step_of_whole_zones_in_a_dense_stream_is_named(
    tmp_path: Path, jump_ms: float, said: str | None
) -> None:
    lines = [reading(at * 100 + (jump_ms if at >= 50 else 0)) for at in range(100)]
    track, items = read(write(tmp_path / "a", lines))
    assert len(items) == 100
    assert codes(track) == ([("timezone-jump", 51)] if said else [])
    assert said is None or track.anomalies[0].detail.startswith(said)


def test_a_reading_every_quarter_of_an_hour_is_no_change_of_zone(tmp_path: Path) -> None:
    track, _ = read(write(tmp_path / "a", [reading(at * 900_000) for at in range(20)]))
    assert codes(track) == []


def test_a_leap_second_is_named_and_time_does_not_go_back(tmp_path: Path) -> None:
    lines = [
        reading("2016-12-31T23:59:59.5Z"),
        reading("2016-12-31T23:59:60Z"),
        reading("2016-12-31T23:59:60.5Z"),
        reading("2017-01-01T00:00:00.5Z"),
    ]
    track, items = read(write(tmp_path / "a", lines))
    assert [item.ts_ms - items[0].ts_ms for item in items] == [0, 500, 500, 1000]
    assert [code for code, _ in codes(track)].count("leap-second") == 2


def test_changed_channels_are_named_and_kept(tmp_path: Path) -> None:
    lines = [reading(0, ax=1, ay=2), reading(1, ax=1, az=3), reading(2, ax=1, ay=2)]
    track, items = read(write(tmp_path / "a", lines))
    assert len(items) == 3
    assert [(found.code, found.detail) for found in track.anomalies] == [
        ("channels-changed", "missing: ay; new: az")
    ]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("no json", "JSON"),
        ("[1, 2]", "not an object"),
        ('{"ts": 1, "values": {"ax": NaN}}', "without NaN"),
        ('{"ts": 1, "values": {"ax": Infinity}}', "without NaN"),
        ('{"ts": 1, "values": {"ax": 1e999}}', "ax is not finite"),
        ('{"ts": 1, "values": {"ax": 1' + "0" * 400 + "}}", "ax is not finite"),
        ('{"ts": 1, "values": {"ax": true}}', "ax is no number"),
        ('{"ts": 1, "values": {"ax": "1"}}', "ax is no number"),
        ('{"ts": 1, "values": {}}', "named numbers"),
        ('{"ts": 1, "values": [1]}', "named numbers"),
        ('{"ts": 1, "values": {"ax": 1, "ax": 2}}', "distinct keys"),
        ('{"ts": 1, "values": {"ax": 1}, "colour": 3}', "unknown keys: colour"),
        ('{"ts": 1, "values": {"ax": 1}, "Jane Doe 1970": 3}', "one of odd characters"),
        ('{"values": {"ax": 1}}', 'has to have "ts"'),
        ('{"ts": 1, "text": "x"}', "unknown keys: text"),
        ('{"ts": "2026-11-30T10:00:00", "values": {"ax": 1}}', "naive-time"),
        ('{"ts": "0000-11-30T10:00:00Z", "values": {"ax": 1}}', "impossible-time"),
        ('{"ts": "2026-11-30T10:00:00Z", "values": {"ax": 1}}', "clock-changed"),
        ('{"ts": 99999999999999, "values": {"ax": 1}}', "impossible-time"),
        ("[" * 40_000, "JSON"),
        ("\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "JSON"),
    ],
)
def test_a_bad_line_ends_the_track_after_the_good_ones_and_is_named(
    tmp_path: Path, line: str, says: str
) -> None:
    path = write(tmp_path / "a", [reading(0), line, reading(2)])
    (track,) = open_tracks(opened(path), "sensors")
    items = []
    with pytest.raises(BadInput) as stop:
        for item in track.items():
            items.append(item)
    assert [item.place for item in items] == ["line 1"]
    assert says in stop.value.what
    assert stop.value.where == "a, line 2"
    assert "Jane" not in str(stop.value)


def test_names_beyond_the_first_few_are_counted(tmp_path: Path) -> None:
    line = reading(0) | {f"key{at}": 1 for at in range(20)}
    with pytest.raises(BadInput, match="and 12 more"):
        read(write(tmp_path / "a", [line]))


@pytest.mark.parametrize("text", ["", " \u200b ", "a\0b", 7])
def test_a_text_that_is_none_is_named_by_its_line(tmp_path: Path, text: object) -> None:
    with pytest.raises(BadInput, match="line 2"):
        read(write(tmp_path / "a", [{"ts": 0, "text": "x"}, {"ts": 1, "text": text}]), "events")


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        (MediaLimits(line_bytes=60), "line 3"),
        (MediaLimits(lines=2), "line 3"),
        (MediaLimits(duration_ms=1000), "line 3"),
        (MediaLimits(channels=1), "line 3"),
    ],
)
def test_bounds_stop_at_the_line_that_goes_beyond(
    tmp_path: Path, limits: MediaLimits, says: str
) -> None:
    long = {f"channel{at}": 0.5 for at in range(9)}
    path = write(tmp_path / "a", [reading(0, a=1), reading(1, a=1), reading(1e6, **long)])
    with pytest.raises(BadInput, match=says):
        read(path, limits=limits)


def test_a_text_beyond_its_bound_is_too_large(tmp_path: Path) -> None:
    with pytest.raises(TooLarge, match="line 1"):
        read(write(tmp_path / "a", [{"ts": 0, "text": "x" * 30_000}]), "events")


def test_a_file_of_blank_lines_holds_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no line"):
        read(write(tmp_path / "a", ["", " "]))


TIMES = st.one_of(st.integers(0, 10**6), st.floats(0, 1e6))


@given(st.lists(TIMES, min_size=1, max_size=30))
@settings(deadline=None, max_examples=60)
def test_whatever_the_times_items_never_go_back_and_none_vanishes_unnamed(
    tmp_path_factory: pytest.TempPathFactory, times: list[float]
) -> None:
    path = write(tmp_path_factory.mktemp("s") / "a", [reading(time) for time in times])
    track, items = read(path)
    stamps = [item.ts_ms for item in items]
    assert stamps == sorted(stamps)
    assert len(items) + dict(track.anomaly_counts).get("backwards-step", 0) == len(times)
