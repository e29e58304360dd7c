from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.children.report import ErrorDocument
from services.engines.frames import pack_frame
from services.ingest.media.anomalies import Anomaly
from services.ingest.media.wire import (
    BATCH,
    Batch,
    Head,
    Message,
    State,
    batches,
    pack_message,
    receive_message,
    unpack,
)
from services.ingest.tracks import Item
from validators.contracts.errors import BadInput, Refused


def carried(pieces: Sequence[memoryview]) -> Message:
    data = b"".join(pieces)
    at = 0

    def fill(buffer: memoryview) -> None:
        nonlocal at
        if at + len(buffer) > len(data):
            raise EOFError
        buffer[:] = data[at : at + len(buffer)]
        at += len(buffer)

    return receive_message(fill)


def there_and_back(items: Sequence[Item], dims: tuple[int, ...]) -> list[Item]:
    out: list[Item] = []
    for batch, values in batches(iter(items)):
        message = carried(pack_message(Head(batch=batch), values))
        out += unpack(message, out[-1] if out else None, dims)
    return out


def same(one: Item, two: Item) -> bool:
    if isinstance(one.value, np.ndarray):
        return replace(one, value="") == replace(two, value="") and np.array_equal(
            one.value, np.asarray(two.value)
        )
    return one == two


@given(st.integers(0, 3 * BATCH), st.sampled_from(["vectors", "frames", "texts", "readings"]))
@settings(deadline=None, max_examples=40)
def test_items_arrive_as_they_left(count: int, kind: str) -> None:
    random = np.random.default_rng(count)
    make = {
        "vectors": lambda at: random.standard_normal(13).astype(np.float32),
        "frames": lambda at: random.integers(0, 255, (4, 6, 3)).astype(np.uint8),
        "texts": lambda at: f"text {at} 文",
        "readings": lambda at: {"ax": float(at), "ay": 0.1},
    }[kind]
    dims = {"vectors": (13,), "frames": (4, 6, 3), "texts": (), "readings": (2,)}[kind]
    items = [Item(at, 10.0 * at, make(at), 10.0, f"place {at}") for at in range(count)]
    got = there_and_back(items, dims)
    assert len(got) == count
    assert all(same(one, two) for one, two in zip(items, got, strict=True))


def test_a_last_block_may_be_shorter() -> None:
    items = [Item(0, 0, np.zeros(1600, np.float32)), Item(1, 100, np.zeros(7, np.float32))]
    assert [len(item.value) for item in there_and_back(items, (1600,))] == [1600, 7]


def test_texts_do_not_wait_for_the_next() -> None:
    def slow() -> Iterator[Item]:
        yield Item(0, 0, "page one")
        raise AssertionError("the second page was asked for too early")

    batch, _ = next(batches(slow()))
    assert batch.texts == ("page one",)


def test_what_came_before_an_error_is_carried_before_it() -> None:
    def broken() -> Iterator[Item]:
        yield Item(0, 0, np.zeros(13, np.float32))
        yield Item(1, 10, np.zeros(13, np.float32))
        raise BadInput("damaged")

    stream = batches(broken())
    assert next(stream)[0].ts_ms == (0, 10)
    with pytest.raises(BadInput):
        next(stream)


def test_state_and_errors_are_carried() -> None:
    state = State((Anomaly("clipped", 3, 30.0, "x"),), (("clipped", 1),), (("rms_db", -3.0),))
    error = ErrorDocument("BadInput", "what", "where", "remedy")
    message = carried(pack_message(Head(state=state, done=True), None, error))
    assert (message.head.state, message.error, message.head.done) == (state, error, True)


GOOD = Batch(0, (0.0, 10.0), (10.0, 10.0), ("a", "b"))


@pytest.mark.parametrize(
    ("batch", "values"),
    [
        (replace(GOOD, first=1), np.zeros((2, 13), np.float32)),
        (replace(GOOD, ts_ms=(10.0, 0.0)), np.zeros((2, 13), np.float32)),
        (replace(GOOD, ts_ms=(0.0, float("nan"))), np.zeros((2, 13), np.float32)),
        (replace(GOOD, duration_ms=(0.0, float("inf"))), np.zeros((2, 13), np.float32)),
        (replace(GOOD, places=("a",)), np.zeros((2, 13), np.float32)),
        (GOOD, np.zeros((3, 13), np.float32)),
        (GOOD, np.zeros((2, 14), np.float32)),
        (GOOD, np.zeros((2, 13, 1), np.float32)),
        (GOOD, np.zeros((2, 0), np.float32)),
        (GOOD, None),
        (replace(GOOD, texts=("a", "b")), np.zeros((2, 13), np.float32)),
        (replace(GOOD, texts=("a", "b"), readings=({}, {})), None),
    ],
)
def test_a_child_that_lies_is_refused(batch: Batch, values: np.ndarray | None) -> None:
    with pytest.raises(Refused):
        list(unpack(Message(Head(batch=batch), values, None), None, (13,)))


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"values": np.zeros(3, np.float32)},
        {"head": np.frombuffer(b"{}", np.uint8), "more": np.zeros(1, np.uint8)},
        {"head": np.frombuffer(b"no json", np.uint8)},
        {"head": np.frombuffer(b'{"done": 3}', np.uint8)},
        {"head": np.zeros(4, np.float32)},
        {"head": np.frombuffer(b"{}", np.uint8), "values": np.zeros(3, np.int64)},
    ],
)
def test_what_is_no_message_is_refused(arrays: dict[str, np.ndarray]) -> None:
    with pytest.raises(Refused):
        carried(pack_frame(arrays))
