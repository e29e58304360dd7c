"""Measures what this machine gives one thread: reading memory, multiplying matrices.

Reading: the dot product of the two halves of an array, which touches every byte once and does next
to nothing with it. Lines: the same over one 4-byte word of every 64-byte line of an array that no
cache holds; if memory moves whole lines, the word costs what the line costs (`line_over_word`
near 1), and if it moved words, a sixteenth.

A roof is the best that was seen, not the usual: what other work takes away is not the machine's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from services.engines.backends.openvino.probe import library
from validators.contracts.engine import Precision

SIDE = 768
"""Of the square matrices: 2·768³ flop, some tens of milliseconds in fp32 on one core."""

REPEATS = 15
LINE_SET_BYTES = 192 * 2**20
_WORDS_A_LINE = 16
_HINTS = {Precision.FP32: "f32", Precision.FP16: "f16", Precision.BF16: "bf16"}


def read_rate(size_bytes: int) -> float:
    """Bytes a second when an array of this size is read again and again."""
    floats = np.ones(max(2, size_bytes // 4), np.float32)
    middle = floats.size // 2
    a, b = floats[:middle], floats[middle : 2 * middle]
    passes = max(1, (4 * 2**20) // floats.nbytes)  # so that the clock has something to see

    def read() -> None:
        for _ in range(passes):
            np.dot(a, b)

    return passes * (a.nbytes + b.nbytes) / _best_s(read)


def line_over_word() -> float:
    """Time of one word of each line over the time of the whole lines, per line, out of cache."""
    floats = np.ones(LINE_SET_BYTES // 4, np.float32)
    middle = floats.size // 2
    a, b = floats[:middle], floats[middle:]
    whole = _best_s(lambda: np.dot(a, b))
    words = _best_s(lambda: np.dot(a[::_WORDS_A_LINE], b[::_WORDS_A_LINE]))
    return words / whole


def multiply_rates() -> tuple[tuple[Precision, float], ...]:
    """Flop/s of a large matrix product, for each precision that this CPU really multiplies in."""
    found = []
    for precision in (Precision.FP32, Precision.FP16, Precision.BF16, Precision.INT8):
        rate = _multiply_rate(precision)
        if rate is not None:
            found.append((precision, rate))
    return tuple(found)


def _multiply_rate(precision: Precision) -> float | None:
    ov = library()
    model = ov.Core().read_model(_product(precision).SerializeToString())
    hint = _HINTS.get(precision, "f32")
    settings = {"INFERENCE_PRECISION_HINT": hint, "INFERENCE_NUM_THREADS": 1}
    compiled = ov.Core().compile_model(model, "CPU", settings)
    if compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name() != hint:
        return None  # it took another precision: there is nothing to measure
    request = compiled.create_infer_request()
    feeds = {"x": np.linspace(-1, 1, SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)}
    return 2.0 * SIDE**3 / _best_s(lambda: request.infer(feeds, share_inputs=True))


def _product(precision: Precision) -> onnx.ModelProto:
    """x · W, for int8 between Q/DQ pairs."""
    weight = np.linspace(-1, 1, SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)
    value, node = helper.make_tensor_value_info, helper.make_node
    constants: dict[str, npt.NDArray[Any]] = {"w": weight}
    nodes = [node("MatMul", ["x", "w"], ["y"])]
    if precision is Precision.INT8:
        constants = {
            "wq": np.round(weight * 127).astype(np.int8),
            "scale": np.array(1 / 127, np.float32),
            "zero": np.array(0, np.int8),
        }
        nodes = [
            node("QuantizeLinear", ["x", "scale", "zero"], ["xq"]),
            node("DequantizeLinear", ["xq", "scale", "zero"], ["xd"]),
            node("DequantizeLinear", ["wq", "scale", "zero"], ["wd"]),
            node("MatMul", ["xd", "wd"], ["y"]),
        ]
    shape = [SIDE, SIDE]
    graph = helper.make_graph(
        nodes,
        "product",
        [value("x", TensorProto.FLOAT, shape)],
        [value("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def _best_s(call: Callable[[], object]) -> float:
    call()
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)
