"""What model and tokenizer files say of themselves, and what two of them say differently."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from services.compatibility.static_onnx import read_facts
from services.compatibility.tokenizers import read_tokenizer
from tests.services.compatibility.stack_onnx import model, stack
from validators.compatibility.facts import compare_models, compare_tokenizers
from validators.contracts.errors import BadInput


def differences(old: onnx.ModelProto, new: onnx.ModelProto) -> dict[str, tuple[str, str]]:
    found = compare_models(read_facts(old, ["vector"]), read_facts(new, ["vector"]))
    return {item.what: (item.old, item.new) for item in found}


@pytest.mark.parametrize("written_out", [False, True])
def test_an_epsilon_is_read_from_one_operator_and_from_eight(written_out: bool) -> None:
    made = stack(epsilon={1: 1e-12}, written_out=written_out)
    norms = read_facts(made).norms
    assert [norm.kind for norm in norms] == ["LayerNorm"] * 3
    assert [norm.epsilon for norm in norms] == pytest.approx([1e-5, 1e-12, 1e-5])


@pytest.mark.parametrize(
    ("epsilon", "found"),
    [(1e-5 + 2e-7, True), (1e-12, True), (1e-5 + 0.5e-7, False), (1e-5, False)],
)
def test_epsilons_further_apart_than_1e7_are_a_finding(epsilon: float, found: bool) -> None:
    names = differences(stack(), stack(epsilon={1: epsilon}))
    assert (set(names) == {"epsilon.norm_1"}) is found
    assert found or not names


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [(1e-12, 9e-8, True), (1e-7, 1e-12, True), (1e-12, 1e-11, True), (0.0, 1e-12, True),
     (1e-12, 5e-12, False), (2e-7, 2.5e-7, False), (0.0, 0.0, False)],
)  # fmt: skip
def test_epsilons_that_a_half_loses_differ_by_their_ratio(
    old: float, new: float, found: bool
) -> None:
    names = differences(stack(epsilon={1: old}), stack(epsilon={1: new}))
    assert (set(names) == {"epsilon.norm_1"}) is found
    assert not found or "below the least half, 6e-08" in str(names["epsilon.norm_1"])


@pytest.mark.parametrize("ending", ["power", "root"])
def test_norms_with_a_power_or_an_epsilon_beside_the_root_are_found(ending: str) -> None:
    steps = [
        helper.make_node("ReduceMean", ["features"], ["mean"], axes=[-1]),
        helper.make_node("Sub", ["features", "mean"], ["gap"]),
        helper.make_node("Mul", ["gap", "gap"], ["square"]),
        helper.make_node("ReduceMean", ["square"], ["spread"], axes=[-1]),
    ]
    if ending == "power":
        steps += [
            helper.make_node("Add", ["spread", "eps"], ["safe"]),
            helper.make_node("Pow", ["safe", "minus_half"], ["inverse"]),
            helper.make_node("Mul", ["gap", "inverse"], ["vector"]),
        ]
    else:
        steps += [
            helper.make_node("Sqrt", ["spread"], ["root"]),
            helper.make_node("Add", ["root", "eps"], ["safe"]),
            helper.make_node("Div", ["gap", "safe"], ["vector"]),
        ]
    constants = [
        numpy_helper.from_array(np.array(value, np.float32), name)
        for name, value in (("eps", 1e-6), ("minus_half", -0.5))
    ]
    (norm,) = read_facts(model(steps, constants)).norms
    assert (norm.name, norm.kind) == ("vector", "LayerNorm")
    assert norm.epsilon == pytest.approx(1e-6)


def test_an_rms_norm_is_told_from_a_layer_norm() -> None:
    eps, two = (
        numpy_helper.from_array(np.array(value, np.float32), name)
        for name, value in (("eps", 1e-6), ("two", 2.0))
    )
    nodes = [
        helper.make_node("Pow", ["features", "two"], ["square"]),
        helper.make_node("ReduceMean", ["square"], ["spread"], axes=[-1]),
        helper.make_node("Add", ["eps", "spread"], ["safe"]),
        helper.make_node("Sqrt", ["safe"], ["root"]),
        helper.make_node("Reciprocal", ["root"], ["inverse"]),
        helper.make_node("Mul", ["features", "inverse"], ["vector"]),
    ]
    (norm,) = read_facts(model(nodes, [eps, two])).norms
    assert (norm.name, norm.kind) == ("vector", "RMSNorm")
    assert norm.epsilon == pytest.approx(1e-6)


def test_other_weights_of_the_same_shape_are_no_static_difference() -> None:
    assert differences(stack(), stack(scale={0: 3.0})) == {}


def test_types_shapes_and_operators_of_weights_are_compared() -> None:
    found = differences(stack(), stack(depth=4, dtype=np.float16))
    assert found["weights.types"][0].startswith("float ")
    assert found["weights.types"][1].startswith("float16 ")
    assert found["weights.names"] == ("9", "0 gone, 3 added")
    assert found["norms"] == ("LayerNorm 3", "LayerNorm 4")
    assert int(found["parameters"][1]) > int(found["parameters"][0])


TAILS: dict[str, tuple[list[onnx.NodeProto], str, bool]] = {
    "mean": (
        [helper.make_node("ReduceMean", ["hidden"], ["vector"], axes=[1], keepdims=0)],
        "mean", False,
    ),
    "cls": (
        [helper.make_node("Gather", ["hidden", "zero"], ["vector"], axis=1)],
        "cls", False,
    ),
    "max, projected": (
        [
            helper.make_node("ReduceMax", ["hidden"], ["pooled"], axes=[1], keepdims=0),
            helper.make_node("MatMul", ["pooled", "square"], ["vector"]),
        ],
        "max", False,
    ),
    "mean, unit length": (
        [
            helper.make_node("ReduceMean", ["hidden"], ["pooled"], axes=[1], keepdims=0),
            helper.make_node("ReduceL2", ["pooled"], ["norm"], axes=[1], keepdims=1),
            helper.make_node("Clip", ["norm", "tiny"], ["bounded"]),
            helper.make_node("Div", ["pooled", "bounded"], ["vector"]),
        ],
        "mean", True,
    ),
    "masked mean, unit length written out": (
        [
            helper.make_node("Mul", ["hidden", "mask"], ["kept"]),
            helper.make_node("ReduceSum", ["kept", "one"], ["total"], keepdims=0),
            helper.make_node("ReduceSum", ["mask", "one"], ["count"], keepdims=0),
            helper.make_node("Div", ["total", "count"], ["pooled"]),
            helper.make_node("Mul", ["pooled", "pooled"], ["squares"]),
            helper.make_node("ReduceSum", ["squares", "one"], ["sum"], keepdims=1),
            helper.make_node("Sqrt", ["sum"], ["norm"]),
            helper.make_node("Div", ["pooled", "norm"], ["vector"]),
        ],
        "masked mean", True,
    ),
    "a sum of two poolings is not guessed": (
        [
            helper.make_node("ReduceLogSumExp", ["hidden"], ["vector"], axes=[1], keepdims=0),
        ],
        "unknown", False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("tail", TAILS)
def test_pooling_and_final_length_are_read_from_the_end_of_the_graph(tail: str) -> None:
    nodes, pooling, normalised = TAILS[tail]
    (found,) = read_facts(_with_tail(nodes), ["vector"]).outputs
    assert (found.pooling, found.normalised) == (pooling, normalised)


def test_another_pooling_is_a_finding() -> None:
    found = differences(_with_tail(TAILS["cls"][0]), _with_tail(TAILS["mean, unit length"][0]))
    assert found["pooling.vector"] == ("cls", "mean")
    assert found["normalisation.vector"] == ("none in the graph", "unit length")


def _with_tail(nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    """hidden [batch, tokens, 16] and mask [batch, tokens, 1] → vector."""
    value = helper.make_tensor_value_info
    kind = onnx.TensorProto.FLOAT
    constants = {
        "zero": np.array(0, np.int64), "one": np.array([1], np.int64),
        "tiny": np.array(1e-12, np.float32), "square": np.eye(16, dtype=np.float32),
    }  # fmt: skip
    graph = helper.make_graph(
        nodes, "tail",
        [value("hidden", kind, ["b", "tokens", 16]), value("mask", kind, ["b", "tokens", 1])],
        [value("vector", kind, ["b", 16])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def tokenizer(**changes: Any) -> bytes:
    document: dict[str, Any] = {
        "truncation": {"max_length": 128},
        "padding": None,
        "added_tokens": [{"id": 0, "content": "[PAD]", "special": True}],
        "normalizer": {"type": "BertNormalizer", "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "model": {"type": "WordPiece", "unk_token": "[UNK]",
                  "vocab": {"[PAD]": 0, "[UNK]": 1, "cat": 2, "dog": 3}},
    }  # fmt: skip
    return json.dumps(document | changes).encode()


def moved(**vocab: int) -> dict[str, Any]:
    return {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[PAD]": 0, "[UNK]": 1, **vocab}}


@pytest.mark.parametrize(
    ("changes", "what", "old", "new"),
    [
        ({"truncation": {"max_length": 256}}, "tokenizer.max_tokens", "128", "256"),
        ({"normalizer": {"type": "BertNormalizer", "lowercase": False}},
         "tokenizer.lowercase", "True", "False"),
        ({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]}},
         "tokenizer.lowercase", "True", "False"),
        ({"model": moved(cat=3, dog=2)},
         "tokenizer.tokens", "as they were", "0 added, 0 removed, 2 moved ('cat', 'dog')"),
        ({"model": moved(cat=2, bird=3, fish=4)},
         "tokenizer.tokens", "as they were",
         "2 added ('bird', 'fish'), 1 removed ('dog'), 0 moved"),
        ({"model": moved(cat=2, dog=3, fish=4)},
         "tokenizer.vocabulary", "4 tokens", "5 tokens"),
        ({"added_tokens": [{"id": 1, "content": "[PAD]", "special": True}]},
         "tokenizer.special.[PAD]", "0", "1"),
        ({"model": {"type": "Unigram", "vocab": [["[PAD]", 0.0], ["cat", -1.0]]}},
         "tokenizer.kind", "WordPiece", "Unigram"),
    ],
)  # fmt: skip
def test_a_change_of_the_tokenizer_is_named(
    changes: dict[str, Any], what: str, old: str, new: str
) -> None:
    pair = read_tokenizer(tokenizer()), read_tokenizer(tokenizer(**changes))
    found = {item.what: (item.old, item.new) for item in compare_tokenizers(*pair)}
    assert found[what] == (old, new)


def test_the_same_tokenizer_has_no_difference() -> None:
    facts = read_tokenizer(tokenizer())
    assert compare_tokenizers(facts, facts) == ()


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"model": {}}', b"\xff", b"[" * 100_000])
def test_what_is_no_tokenizer_is_refused(data: bytes) -> None:
    with pytest.raises(BadInput, match="tokenizer"):
        read_tokenizer(data)
