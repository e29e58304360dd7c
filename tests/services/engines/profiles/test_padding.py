from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.engines.profiles.assign import Serve, ServedProfile, Split, assign
from services.engines.profiles.cost import linear_work
from services.engines.profiles.padding import Padder
from services.engines.tensors import Arrays
from tests.services.engines.profiles.model import INPUTS, OUTPUTS, VOCABULARY, make_runner
from validators.contracts.errors import BadInput, TooLarge, Unsupported
from validators.contracts.ports import Tensors
from validators.contracts.tensors import DType, Meaning, TensorSpec

PADDER = Padder(INPUTS, OUTPUTS)
WORK = linear_work(("batch", "tokens"))
RUN: Callable[[Tensors], Arrays] = make_runner()


def request(seed: int, batch: int, tokens: int) -> Arrays:
    """Ids, and masks that keep at least the first token of each row."""
    draw = np.random.default_rng(seed)
    kept = draw.integers(1, tokens + 1, batch)
    return {
        "ids": draw.integers(0, VOCABULARY, (batch, tokens)),
        "mask": (np.arange(tokens)[None] < kept[:, None]).astype(np.int64),
    }


def assert_same(got: Tensors, wanted: Tensors, mask: np.ndarray[Any, Any]) -> None:
    assert got.keys() == wanted.keys()
    np.testing.assert_allclose(got["embedding"], wanted["embedding"], atol=1e-5, rtol=0)
    assert got["features"].shape == wanted["features"].shape
    kept = mask.astype(bool)
    np.testing.assert_allclose(got["features"][kept], wanted["features"][kept], atol=1e-5, rtol=0)


@given(
    st.integers(0, 99), st.integers(1, 5), st.integers(1, 20), st.integers(0, 4), st.integers(0, 20)
)
@settings(deadline=None)
def test_padded_results_equal_the_unpadded_ones(
    seed: int, batch: int, tokens: int, more_rows: int, more_tokens: int
) -> None:
    feeds = request(seed, batch, tokens)
    padded = PADDER.pad(feeds, {"batch": batch + more_rows, "tokens": tokens + more_tokens})
    assert {array.shape for array in padded.values()} == {(batch + more_rows, tokens + more_tokens)}
    outputs = RUN(padded)
    assert all(np.isfinite(array).all() for array in outputs.values())
    own = {"batch": batch, "tokens": tokens}
    assert_same(PADDER.cut(outputs, own), RUN(feeds), feeds["mask"])


@given(st.integers(0, 99), st.integers(1, 12), st.integers(1, 16))
@settings(deadline=None)
def test_a_request_run_as_assigned_equals_the_whole_one(seed: int, batch: int, tokens: int) -> None:
    one = {"batch": 1, "tokens": 1}
    profiles = [
        ServedProfile(0, one, {"batch": 1, "tokens": 16}),
        ServedProfile(1, one, {"batch": 4, "tokens": 8}),
        ServedProfile(2, one, {"batch": 4, "tokens": 16}),
    ]
    feeds = request(seed, batch, tokens)
    decision = assign({"batch": batch, "tokens": tokens}, profiles, WORK)
    assert isinstance(decision, Split if batch > 4 else Serve)
    shapes = []

    def run(padded: Tensors) -> Tensors:
        shapes.append(padded["ids"].shape)
        return RUN(padded)

    if isinstance(decision, Serve | Split):
        assert_same(PADDER.run(decision, feeds, run), RUN(feeds), feeds["mask"])
    assert set(shapes) <= {tuple(item.maximum.values()) for item in profiles}


def test_new_tokens_are_masked_and_new_rows_repeat_the_first() -> None:
    feeds = {"ids": np.array([[7, 8], [9, 3]]), "mask": np.array([[1, 1], [1, 0]])}
    padded = PADDER.pad(feeds, {"batch": 3, "tokens": 4})
    assert padded["ids"].tolist() == [[7, 8, 0, 0], [9, 3, 0, 0], [7, 8, 0, 0]]
    assert padded["mask"].tolist() == [[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0]]


def test_a_padded_id_is_one_of_the_table() -> None:
    ids = TensorSpec("ids", DType.INT64, ("tokens",), Meaning.TOKEN_IDS, value_range=(5, 9))
    mask = TensorSpec("mask", DType.INT64, ("tokens",), Meaning.ATTENTION_MASK)
    padded = Padder((ids, mask), ()).pad(
        {"ids": np.array([6]), "mask": np.array([1])}, {"tokens": 3}
    )
    assert padded["ids"].tolist() == [6, 5, 5]


FRAMES = TensorSpec("mel", DType.FP32, ("batch", 4, "frames"), Meaning.MEL)


def test_a_dimension_without_a_mask_is_padded_only_where_declared() -> None:
    feeds = {"mel": np.ones((1, 4, 3), np.float32)}
    with pytest.raises(Unsupported, match="no mask runs along it"):
        Padder((FRAMES,), ()).pad(feeds, {"batch": 1, "frames": 5})
    padded = Padder((FRAMES,), (), ignored=frozenset({"frames"})).pad(feeds, {"frames": 5})
    assert padded["mel"].shape == (1, 4, 5)
    assert padded["mel"][0, 0].tolist() == [1, 1, 1, 0, 0]
    assert Padder((FRAMES,), ()).pad(feeds, {"batch": 2, "frames": 3})["mel"].all()


def test_outputs_that_could_not_be_cut_back_are_not_padded_for() -> None:
    halved = TensorSpec("features", DType.FP32, ("batch", "half"), Meaning.FRAME_FEATURES)
    padder = Padder(INPUTS, (halved,))
    with pytest.raises(Unsupported, match="cannot be cut along half"):
        padder.pad(request(1, 2, 5), {"batch": 2, "tokens": 6})
    assert padder.pad(request(1, 2, 5), {"batch": 4, "tokens": 5})["ids"].shape == (4, 5)
    whole = padder.cut({"features": np.zeros((4, 3))}, {"batch": 2, "tokens": 5})
    assert whole["features"].shape == (2, 3)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(BadInput, match="over the 4"):
        PADDER.pad(request(1, 2, 5), {"batch": 2, "tokens": 4})
    with pytest.raises(BadInput, match="do not make a batch"):
        PADDER.split(request(1, 3, 5), [2, 2])
    with pytest.raises(TooLarge):
        PADDER.pad(request(1, 1, 1), {"batch": 1 << 20, "tokens": 1 << 20})


def test_a_tensor_without_a_batch_goes_whole_into_each_part() -> None:
    scale = TensorSpec("scale", DType.FP32, (2,), Meaning.SCORES)
    padder = Padder((*INPUTS, scale), OUTPUTS)
    parts = padder.split({**request(1, 3, 4), "scale": np.ones(2, np.float32)}, [2, 1])
    assert [part["ids"].shape[0] for part in parts] == [2, 1]
    assert all(part["scale"].shape == (2,) for part in parts)


def test_outputs_without_a_batch_are_not_joined() -> None:
    total = TensorSpec("total", DType.FP32, (4,), Meaning.SCORES)
    with pytest.raises(Unsupported, match="no dimension batch"):
        Padder(INPUTS, (total,)).join([{"total": np.zeros(4)}] * 2)


def test_what_the_mask_hides_is_cut_without_loss() -> None:
    padder = Padder(INPUTS, OUTPUTS[:1])
    feeds = {"ids": np.array([[7, 8, 9, 9], [9, 3, 9, 9]]), "mask": np.array([[1, 1, 0, 0]] * 2)}
    kept, lost = padder.shorten(feeds, {"tokens": 2})
    assert (kept["ids"].tolist(), lost) == ([[7, 8], [9, 3]], False)
    assert padder.shorten(feeds, {"tokens": 1})[1]
    assert PADDER.shorten(feeds, {"tokens": 2})[1]  # its output has the tokens, so fewer of them


def test_a_row_that_is_padded_at_its_front_is_not_cut_to_nothing() -> None:
    feeds = {"ids": np.array([[0, 0, 9], [7, 8, 9]]), "mask": np.array([[0, 0, 1], [1, 1, 1]])}
    with pytest.raises(Unsupported, match="padded at its front"):
        PADDER.shorten(feeds, {"tokens": 2})


def test_a_mask_that_is_added_to_scores_is_not_padded_with_what_would_keep() -> None:
    added = TensorSpec("bias", DType.FP32, ("batch", "tokens"), Meaning.ATTENTION_MASK)
    kept = TensorSpec("mask", DType.FP32, ("batch", "tokens"), Meaning.ATTENTION_MASK,
                      value_range=(0, 1))  # fmt: skip
    assert Padder((added,), OUTPUTS).paddable == {"batch"}
    assert Padder((kept,), OUTPUTS).paddable == {"batch", "tokens"}
    assert Padder((kept,), OUTPUTS).cuttable == {"tokens"}
    assert Padder((kept, added), OUTPUTS).cuttable == set()


def test_a_batch_that_the_outputs_do_not_have_is_not_padded() -> None:
    mean = TensorSpec("mean", DType.FP32, (4,), Meaning.SCORES)
    assert Padder(INPUTS, (mean,)).paddable == {"tokens"}
