"""A real image encoder whose graph never ends where a pixel is large."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from services.children.phases import Phases
from services.engines.backends.catalogue import backend
from services.engines.canary import record_canary
from services.engines.cases import canary_case
from services.engines.load import open_engine
from services.engines.specs import specify
from services.engines.tensors import digest_feeds
from tests.services.engines.models import IMAGE, IMAGE_PROFILES
from validators.contracts.digest import digest_bytes
from validators.contracts.engine import EngineManifest, EngineState, Precision

ENDLESS_ABOVE = 100.0


def endless_model() -> onnx.ModelProto:
    """pixels [batch,3,16,16] → features [batch,8], logits [batch,4]; ends below ENDLESS_ABOVE."""
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Greater", ["state", "bound"], ["more"]),
            helper.make_node("Identity", ["state"], ["next"]),
        ],
        "turn",
        [
            value("turn", TensorProto.INT64, []),
            value("on", TensorProto.BOOL, []),
            value("state", TensorProto.FLOAT, []),
        ],
        [value("more", TensorProto.BOOL, []), value("next", TensorProto.FLOAT, [])],
    )
    nodes = [
        helper.make_node("ReduceMax", ["pixels"], ["peak"], keepdims=0),
        helper.make_node("Loop", ["", "yes", "peak"], ["rest"], body=body),
        helper.make_node("Sub", ["peak", "rest"], ["nothing"]),
        helper.make_node("Add", ["pixels", "nothing"], ["same"]),
        helper.make_node("GlobalAveragePool", ["same"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weight"], ["features"]),
        helper.make_node("MatMul", ["features", "head"], ["logits"]),
    ]
    constants = [
        numpy_helper.from_array(np.array(ENDLESS_ABOVE, np.float32), "bound"),
        numpy_helper.from_array(np.array(True), "yes"),
        numpy_helper.from_array(np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8), "weight"),
        numpy_helper.from_array(np.linspace(1, -1, 32, dtype=np.float32).reshape(8, 4), "head"),
    ]
    graph = helper.make_graph(
        nodes,
        "endless",
        [value("pixels", TensorProto.FLOAT, ["batch", 3, 16, 16])],
        [
            value("features", TensorProto.FLOAT, ["batch", 8]),
            value("logits", TensorProto.FLOAT, ["batch", 4]),
        ],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def endless_engine(folder: Path) -> tuple[EngineManifest, Path]:
    """Its ONNX Runtime engine in a file, and a manifest that says VERIFIED, canary and all."""
    source, path = folder / "model.onnx", folder / "engine"
    onnx.save(endless_model(), source)
    spec = specify(
        IMAGE, digest_bytes(source.read_bytes()), "onnxruntime", Precision.FP32, IMAGE_PROFILES
    )
    data = backend("onnxruntime").build(spec, source, Phases(lambda _: None))
    path.write_bytes(data)
    built = EngineManifest(
        spec.key, spec, digest_bytes(data), len(data), EngineState.BUILT, digest_bytes(b"log"), (),
        inputs=IMAGE.inputs, outputs=IMAGE.outputs,
    )  # fmt: skip
    canary = canary_case(IMAGE.inputs, spec.profiles).feeds
    engine = open_engine(built, data, threads=1)
    verified = dataclasses.replace(
        built,
        state=EngineState.VERIFIED,
        verified_on=spec.target,
        canary_inputs=digest_feeds([canary]),
        canary_outputs=record_canary(engine.run(canary)),
    )
    engine.close()
    return verified, path
