from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from services.engines.precision import carried_precision, require_carried
from tests.services.engines.onnx_models import image_model
from validators.contracts.engine import Precision
from validators.contracts.errors import Unsupported


def test_the_type_of_most_weights_decides() -> None:
    assert carried_precision(image_model()) is Precision.FP32
    halves = image_model(weight=np.ones((30, 8), np.float16))
    assert carried_precision(halves) is Precision.FP16


def test_a_quantised_graph_is_int8() -> None:
    node = helper.make_node("QuantizeLinear", ["flat", "scale"], ["small"])
    assert carried_precision(image_model(extra_nodes=[node])) is Precision.INT8


def test_four_bit_weights_are_int4() -> None:
    model = image_model()
    model.graph.initializer.append(helper.make_tensor("w4", TensorProto.INT4, [2], [1, 2]))
    assert carried_precision(model) is Precision.INT4


def test_another_precision_than_the_carried_one_is_refused() -> None:
    require_carried(image_model(), Precision.FP32, "onnxruntime")
    with pytest.raises(Unsupported, match="fp32, not fp16"):
        require_carried(image_model(), Precision.FP16, "tensorrt_rtx")
