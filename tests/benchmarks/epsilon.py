"""When does a layer norm break in half precision? Epsilon by spread, by how and where it is run.

Rows of seeded normal numbers are scaled to a spread and normed: written out operation by operation,
or by the runtime's own norm. The share of rows that come out with NaN or infinity is counted.
Nothing is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
import openvino as ov
import torch
from onnx import TensorProto, helper, numpy_helper

from flows.compatibility.incident import REQUESTS
from flows.examples.incident.requests import make_requests
from flows.examples.incident.text import BERT_EPSILON, TORCH_EPSILON, WrittenNorm
from flows.examples.incident.vision import vision_1_8_3
from tests.benchmarks.result import Machine, Options, Result
from validators.compatibility.estimates import share_of

WIDTH, ROWS, SEED = 192, 400, 0
EPSILONS = (1e-12, 1e-8, 1e-7, 1e-6, 1e-5)
SPREADS = (0.0, 1e-5, 1e-4, 1.5e-4, 2e-4, 3e-4, 1e-3, 1.0)
SHARPNESSES = (0, 0.25, 0.5, 0.75, 1, 2)
TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}

Array = npt.NDArray[Any]


def run(options: Options) -> Result:
    machine = Machine.now()
    torch.set_num_threads(1)
    rows = [_row(f"torch {name}", how, epsilon)
            for name in TYPES for how in ("written", "native") for epsilon in EPSILONS]  # fmt: skip
    rows += [_row(runtime, how, epsilon) for runtime in RUNTIMES for how in ("written", "native")
             for epsilon in (1e-12, 1e-5)]  # fmt: skip
    weighted = list(_weightings())
    worst = {
        "broken_share_written_fp16_bert_epsilon": _at(rows, "torch fp16", "written", 1e-12),
        "broken_share_written_fp16_torch_epsilon": _at(rows, "torch fp16", "written", 1e-5),
        "broken_share_native_fp16_bert_epsilon": _at(rows, "torch fp16", "native", 1e-12),
    }
    notes = (
        f"spread 1e-4, {ROWS} rows of {WIDTH}; nothing is timed, repeats would count the same",
        "OpenVINO asked for f16 computes in bf16 on this processor",
    )
    return Result("epsilon", machine, (*rows, *weighted), worst, notes)


def _weightings() -> Iterator[dict[str, Any]]:
    """How the incident's rate depends on how unequal the weights of a picture's tokens are.

    `sharpness` multiplies the scores before their softmax; the example has 1, the standard
    deviation of scaled dot products of unit-variance vectors.
    """
    vision, requests = vision_1_8_3().half(), make_requests(REQUESTS)
    with torch.inference_mode():
        seen = [vision.look(torch.from_numpy(item["pixels"])) for item in requests]
        for sharpness in SHARPNESSES:
            for epsilon in (BERT_EPSILON, TORCH_EPSILON):
                norm = WrittenNorm(epsilon).half()
                arrived = [
                    norm(tokens * (scores * sharpness).softmax(1).unsqueeze(-1))
                    for tokens, scores in seen
                ]
                broken = sum(not bool(torch.isfinite(item).all()) for item in arrived)
                rate = share_of(broken, len(arrived))
                sizes = torch.stack([item.float().square().mean(-1).sqrt() for item in arrived])
                yield {
                    "where": "the incident's tokens on arrival, fp16",
                    "norm": "written",
                    "epsilon": f"{epsilon:g}",
                    "sharpness": sharpness,
                    "requests_broken": f"{broken} of {len(arrived)}",
                    "low": round(rate.low, 3),
                    "high": round(rate.high, 3),
                    "token_rms_median": round(float(sizes.nanmedian()), 3),
                }


def broken_share(where: str, how: str, epsilon: float, spread: float) -> float:
    """The share of rows with NaN or infinity."""
    values = np.random.default_rng(SEED).normal(size=(ROWS, WIDTH)).astype(np.float32) * spread
    if where.startswith("torch "):
        normed = _torch_norm(how, epsilon)(torch.from_numpy(values).to(TYPES[where.split()[1]]))
        result = normed.float().numpy()
    else:
        result = RUNTIMES[where](how, epsilon, values.astype(np.float32))
    return float((~np.isfinite(result.astype(np.float32))).any(axis=1).mean())


def _torch_norm(how: str, epsilon: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def written(values: torch.Tensor) -> torch.Tensor:
        centred = values - values.mean(-1, keepdim=True)
        return centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + epsilon)

    def native(values: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(values, (WIDTH,), eps=epsilon)

    return written if how == "written" else native


def onnx_norm(how: str, epsilon: float, kind: int) -> bytes:
    """The norm as an ONNX model, its constants in the type of its input."""
    dtype = np.float16 if kind == TensorProto.FLOAT16 else np.float32
    node = helper.make_node
    if how == "native":
        nodes = [node("LayerNormalization", ["x", "one"], ["y"], axis=-1, epsilon=epsilon)]
        weights = [numpy_helper.from_array(np.ones(WIDTH, dtype), "one")]
    else:
        nodes = [
            node("ReduceMean", ["x", "axis"], ["mean"], keepdims=1),
            node("Sub", ["x", "mean"], ["centred"]),
            node("Mul", ["centred", "centred"], ["square"]),
            node("ReduceMean", ["square", "axis"], ["variance"], keepdims=1),
            node("Add", ["variance", "epsilon"], ["held"]),
            node("Sqrt", ["held"], ["deviation"]),
            node("Div", ["centred", "deviation"], ["y"]),
        ]
        weights = [numpy_helper.from_array(np.array(epsilon, dtype), "epsilon"),
                   numpy_helper.from_array(np.array([-1], np.int64), "axis")]  # fmt: skip
    ends = [helper.make_tensor_value_info(name, kind, ["rows", WIDTH]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "norm", ends[:1], ends[1:], weights)
    opset = [helper.make_opsetid("", 20)]
    made: bytes = helper.make_model(graph, opset_imports=opset, ir_version=10).SerializeToString()
    return made


def _onnxruntime(kind: int) -> Callable[[str, float, Array], Array]:
    def norm(how: str, epsilon: float, values: Array) -> Array:
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 4
        model = onnx_norm(how, epsilon, kind)
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        given = values.astype(np.float16) if kind == TensorProto.FLOAT16 else values
        result: Array = session.run(None, {"x": given})[0]
        return result

    return norm


def _openvino(hint: str, kind: int) -> Callable[[str, float, Array], Array]:
    def norm(how: str, epsilon: float, values: Array) -> Array:
        core = ov.Core()
        model = core.read_model(onnx_norm(how, epsilon, kind))
        settings = {"INFERENCE_PRECISION_HINT": hint, "INFERENCE_NUM_THREADS": 1}
        compiled = core.compile_model(model, "CPU", settings)
        given = values.astype(np.float16) if kind == TensorProto.FLOAT16 else values
        return np.array(compiled([given])[0])

    return norm


RUNTIMES: dict[str, Callable[[str, float, Array], Array]] = {
    "ONNX Runtime, fp32 file": _onnxruntime(TensorProto.FLOAT),
    "ONNX Runtime, fp16 file": _onnxruntime(TensorProto.FLOAT16),
    "OpenVINO bf16, fp32 file": _openvino("bf16", TensorProto.FLOAT),
    "OpenVINO bf16, fp16 file": _openvino("bf16", TensorProto.FLOAT16),
}


def _row(where: str, how: str, epsilon: float) -> dict[str, Any]:
    shares: Iterator[tuple[str, float]] = (
        (f"spread {spread:g}", round(broken_share(where, how, epsilon, spread), 3))
        for spread in SPREADS
    )
    return {"where": where, "norm": how, "epsilon": f"{epsilon:g}", **dict(shares)}


def _at(rows: list[dict[str, Any]], where: str, how: str, epsilon: float) -> float:
    row = next(
        r for r in rows if (r["where"], r["norm"], r["epsilon"]) == (where, how, f"{epsilon:g}")
    )
    return float(row["spread 0.0001"])
