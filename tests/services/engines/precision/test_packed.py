from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from services.engines.precision.packed import BLOCK, packable


@pytest.mark.parametrize(
    ("inner", "found"),
    [(BLOCK // 2, ()), (BLOCK, ("product",)), (BLOCK + BLOCK // 2, ()), (4 * BLOCK, ("product",))],
)
def test_only_whole_blocks_are_packed(inner: int, found: tuple[str, ...]) -> None:
    """OpenVINO converts no matrix whose last block is shorter."""
    weights = numpy_helper.from_array(np.ones((inner, 4), np.float32), "weights")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "weights"], ["y"], name="product")],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", inner])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        [weights],
    )
    assert packable(helper.make_model(graph)) == found
