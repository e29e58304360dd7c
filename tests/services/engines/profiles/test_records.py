from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.engines.profiles.histogram import ShapeHistogram, tally
from services.engines.profiles.records import MAX_WINDOWS, append_window, read_windows
from validators.contracts.errors import Refused

DIMS = ("batch", "tokens")


def window(*tokens: int, dims: tuple[str, ...] = DIMS) -> ShapeHistogram:
    return tally(dims, [dict.fromkeys(dims, 1) | {dims[-1]: size} for size in tokens])


@given(st.lists(st.lists(st.integers(1, 5000), min_size=1, max_size=30), max_size=MAX_WINDOWS + 5))
@settings(max_examples=50, deadline=None)
def test_the_latest_windows_come_back_in_their_order(recorded: list[list[int]]) -> None:
    windows = [window(*tokens) for tokens in recorded]
    document: bytes | None = None
    for item in windows:
        document = append_window(document, item)
    if document is not None:
        assert read_windows(document) == windows[-MAX_WINDOWS:]


def test_an_empty_window_changes_nothing() -> None:
    document = append_window(None, window(3))
    assert append_window(document, window()) == document
    assert read_windows(append_window(None, window())) == []


def test_windows_of_another_contract_begin_again() -> None:
    document = append_window(None, window(3))
    other = window(9, dims=("frames",))
    assert read_windows(append_window(document, other)) == [other]


def test_a_damaged_recording_begins_again() -> None:
    assert read_windows(append_window(b'{"format":1,"win', window(3))) == [window(3)]


def changed(**changes: object) -> bytes:
    return json.dumps(json.loads(append_window(None, window(3))) | changes).encode()


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"[]",
        b'{"format":1,"win',
        changed(format=2),
        changed(windows=[{"dims": ["tokens"], "counts": [], "level": 0}]),
        changed(windows=[{"dims": ["tokens"], "counts": [{"sizes": [0], "count": 1}], "level": 0}]),
        changed(
            windows=[
                {"dims": [name], "counts": [{"sizes": [1], "count": 1}], "level": 0}
                for name in ("tokens", "frames")
            ]
        ),
        changed(unknown=1),
    ],
)
def test_a_damaged_recording_is_refused_by_its_name(damaged: bytes) -> None:
    with pytest.raises(Refused) as refusal:
        read_windows(damaged, where="shapes/shop/text.json")
    assert refusal.value.where == "shapes/shop/text.json"
    assert refusal.value.remedy
