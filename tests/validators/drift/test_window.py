from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from tests.validators.datasets import dataset, media, sample
from validators.contracts.errors import BadInput, Refused
from validators.drift.window import DriftWindow, descriptors_of, read_window, write_window


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=8),
        st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=6),
        max_size=4,
    ),
    st.integers(0, 4),
)
def test_a_window_survives_being_written_and_read(
    descriptors: dict[str, list[float]], rows: int
) -> None:
    window = DriftWindow(
        {name: np.asarray(values) for name, values in descriptors.items()},
        {"image": np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)},
    )
    again = read_window(write_window(window))
    assert again.descriptors.keys() == window.descriptors.keys()
    for name, values in window.descriptors.items():
        np.testing.assert_array_equal(again.descriptors[name], values)
    np.testing.assert_array_equal(again.embeddings["image"], window.embeddings["image"])


def test_the_same_window_has_the_same_bytes_whatever_the_order() -> None:
    one, two = np.array([1.0]), np.array([2.0, 3.0])
    first = write_window(DriftWindow({"a": one, "b": two}))
    assert first == write_window(DriftWindow({"b": two, "a": one}))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x04N.",
        b"not a window at all",
        save({"other/x": np.zeros(1)}),
        save({"descriptor/x": np.zeros(1, dtype=np.int64)}),
        save({"descriptor/x": np.array([np.nan])}),
        save({"embedding/x": np.zeros(3, dtype=np.float32)}),
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        read_window(data)


def test_a_window_with_nan_cannot_be_made() -> None:
    with pytest.raises(BadInput):
        DriftWindow({"x": np.array([np.nan])})


def test_descriptors_are_the_measures_and_which_modalities_are_there() -> None:
    found = descriptors_of(dataset(sample("a"), sample("b", media("text"))))
    assert found["presence.image"].tolist() == [1, 0]
    assert found["presence.text"].tolist() == [1, 1]
    assert found["image.brightness"].tolist() == [120]
    assert found["text.words"].tolist() == [3, 3]
