from __future__ import annotations

from itertools import pairwise

import onnx
import pytest
from onnx import TensorProto, helper

from services.engines.profiles.footprint import footprint_of
from tests.services.engines.profiles.model import WIDTH, text_model

FLOAT = 4


def chain(*widths: int | str, batch: int | str = "batch", typed: bool = True) -> onnx.ModelProto:
    """x → a row of nodes whose outputs have these widths, all of float32."""
    names = ["x", *(f"v{number}" for number in range(1, len(widths) - 1)), "y"]
    value = helper.make_tensor_value_info
    shaped = [value(name, TensorProto.FLOAT, [batch, width])
              for name, width in zip(names, widths, strict=True)]  # fmt: skip
    nodes = [helper.make_node("Relu", [a], [b]) for a, b in pairwise(names)]
    graph = helper.make_graph(
        nodes, "chain", shaped[:1], shaped[-1:], value_info=shaped[1:-1] if typed else []
    )
    return helper.make_model(graph)


@pytest.mark.parametrize(
    ("widths", "alive"),
    [
        ((10, 10), 20),  # what comes in and what goes out stay
        ((10, 100, 1), 111),
        ((10, 100, 200, 1), 310),  # 10, 100 and 200 at once: the 1 comes when the 100 has gone
        ((1, 100, 50, 300, 2), 351),
    ],
)
def test_the_instant_that_needs_most_is_what_counts(widths: tuple[int, ...], alive: int) -> None:
    found = footprint_of(chain(*widths), {"batch": 8})
    assert found.memory.elements.at({"batch": 3}) == 3 * alive * FLOAT
    assert found.unsized == 0


def test_a_tensor_is_priced_by_its_own_dimensions() -> None:
    found = footprint_of(chain("tokens", 64, "tokens", batch="tokens"), {"tokens": 100})
    for tokens in (1, 7, 100):
        expected = FLOAT * (2 * tokens**2 + 64 * tokens)
        assert found.memory.elements.at({"tokens": tokens}) == expected


def test_what_has_no_size_is_counted_as_such() -> None:
    assert footprint_of(chain(10, 100, 1, typed=False), {"batch": 8}).unsized == 1
    assert footprint_of(chain(10, "other", 1), {"batch": 8}).unsized == 1


def test_weights_are_shared_and_attention_is_quadratic() -> None:
    model = onnx.shape_inference.infer_shapes(text_model(), data_prop=True)
    found = footprint_of(model, {"batch": 4, "tokens": 512})
    powers = {dict(term.exponents).get("tokens", 0.0) for term in found.memory.elements.terms}
    assert {1.0, 2.0} <= powers
    table = 50 * WIDTH * FLOAT
    assert found.memory.elements.at({"batch": 1, "tokens": 1}) < table
