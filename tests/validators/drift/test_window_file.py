from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from tests.validators.drift.windows import embedded, make_window
from validators.contracts.errors import BadInput, Refused
from validators.drift.window import DriftWindow
from validators.drift.window_file import digest_of, read_window, write_window

KEY = "modalgate.drift_window"
WORDS = st.text(min_size=1, max_size=8)


def whole() -> DriftWindow:
    return make_window(
        {"image.brightness": [1.0, np.nan, 3.0]},
        {"image": embedded([[1.0, 2.0], [3.0, 4.0]], [0, 2]), "text": embedded([[0.0]] * 3)},
        {"presence.image": ["yes", "no", "yes"]},
        {"sensor": ["left", None, "right"]},
        times_ms=np.array([5, 6, 7]),
        recordings=np.array([0, 0, 1], np.int32),
        from_ms=5,
        until_ms=8,
        seen=30,
    )


def plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def rewritten(change: dict[str, object], tensors: dict[str, Any] | None = None) -> bytes:
    """The whole window with another header or with other tensors."""
    data = write_window(whole())
    size = int.from_bytes(data[:8], "little")
    header = json.loads(json.loads(data[8 : 8 + size])["__metadata__"][KEY]) | change
    return bytes(save(load(data) | (tensors or {}), {KEY: json.dumps(header)}))


def test_a_window_survives_being_written_and_read() -> None:
    again = read_window(write_window(whole()))
    assert plain(again) == plain(whole())


@given(
    st.integers(0, 6).flatmap(
        lambda rows: st.tuples(
            st.dictionaries(
                WORDS, st.lists(st.floats(width=32), min_size=rows, max_size=rows), max_size=4
            ),
            st.dictionaries(
                WORDS, st.lists(st.none() | WORDS, min_size=rows, max_size=rows), max_size=3
            ),
        )
    )
)
def test_any_columns_survive(columns: tuple[dict[str, list[float]], dict[str, list[Any]]]) -> None:
    window = make_window(columns[0], categories=columns[1])
    assert plain(read_window(write_window(window))) == plain(window)


def test_the_same_window_has_the_same_bytes_whatever_the_order() -> None:
    one, two = [1.0, 2.0], [2.0, 3.0]
    assert write_window(make_window({"a": one, "b": two})) == write_window(
        make_window({"b": two, "a": one})
    )


def test_the_name_of_a_window_is_pinned() -> None:
    assert digest_of(whole()) == (
        "sha256:9b2b9f87eabed413b39f3a7cf49cbae019ec10adf7cd704bda08132fbcf33952"
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x04N.",
        b"not a window at all",
        (2**63).to_bytes(8, "little") + b"{}",
        save({"other/x": np.zeros(1)}),
        save({"descriptor/x": np.zeros(1, dtype=np.int64)}),
        save({"descriptor/x": np.array([np.nan])}),
        save({"embedding/x": np.zeros(3, dtype=np.float32)}),
        save({"descriptor/x": np.zeros(1)}, {KEY: "no json"}),
        save({"descriptor/x": np.zeros(1)}, {KEY: "{}"}),
        rewritten({"format": 3}),
        rewritten({"rows": 2}),
        rewritten({"rows": 10**9, "seen": 10**9}),
        rewritten({"seen": 1}),
        rewritten({"more": 1}),
        rewritten({"descriptors": ["image.brightness", "image.contrast"]}),
        rewritten({}, {"descriptor/y": np.zeros(3)}),
        rewritten({}, {"vectors/text": np.zeros((2, 1), np.float32)}),
        rewritten({}, {"vectors/text": np.full((3, 1), np.inf, np.float32)}),
        rewritten({}, {"rows/text": np.array([0, 0, 1], np.int32)}),
        rewritten({}, {"tag/sensor": np.array([0, 0, 9], np.int32)}),
        rewritten({"tags": [{"name": "sensor", "words": ["right", "left"]}]}),
        rewritten(
            {
                "embeddings": [
                    {"modality": name, "space": "s", "origin": {"encoder": "x", "engine": "y"}}
                    for name in ("image", "text")
                ]
            }
        ),
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        read_window(data)


def test_a_window_of_the_first_format_is_read_without_origins() -> None:
    old = save({
        "descriptor/image.brightness": np.array([1.0, 2.0]),
        "descriptor/presence.image": np.array([1.0, 0.0, 1.0]),
        "embedding/image": np.ones((2, 4), np.float32),
    })  # fmt: skip
    window = read_window(old)
    assert window.format == 1
    assert window.rows == 3
    assert window.descriptors["image.brightness"].observed().tolist() == [1, 2]
    assert window.embeddings["image"].origin is None
    with pytest.raises(BadInput):
        write_window(window)


def test_vectors_without_an_origin_are_never_written() -> None:
    with pytest.raises(BadInput):
        write_window(make_window({}, {"image": embedded([[1.0]], origin=None)}))
