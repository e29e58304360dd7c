"""The engine key is what every stored engine is found by: changing its definition orphans them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from validators.contracts.digest import canonical_json, digest_bytes
from validators.contracts.documents import load
from validators.contracts.engine import (
    BuildPhase,
    CanaryOutput,
    EngineManifest,
    EngineSpec,
    EngineState,
    HostIdentity,
    Precision,
    ShapeProfile,
    ShapeRange,
)
from validators.contracts.errors import BadInput
from validators.contracts.tensors import DType, Meaning, TensorSpec

SPEC = EngineSpec(
    encoder="image",
    onnx=digest_bytes(b"a model"),
    backend="openvino",
    backend_version="2026.4.1",
    precision=Precision.FP32,
    profiles=(ShapeProfile((ShapeRange("pixels", (1, 3), (2, 3), (8, 3)),)),),
    target=HostIdentity("cpu", "x86_64-avx2", ("avx", "avx2")),
    flags=(("tf32", "off"),),
)


def test_the_definition_of_the_engine_key_is_pinned() -> None:
    assert SPEC.key == "sha256:9ea7d87aa894cbbf5741df21b55be7d20d14d7f14be9d6def3f41f8e8654aab4"


@pytest.mark.parametrize(
    "change",
    [
        {"encoder": "text"},
        {"onnx": digest_bytes(b"another model")},
        {"backend": "onnxruntime"},
        {"backend_version": "2026.4.2"},
        {"precision": Precision.BF16},
        {"profiles": (ShapeProfile((ShapeRange("pixels", (1, 3), (2, 3), (9, 3)),)),)},
        {"target": HostIdentity("cpu", "x86_64-avx2", ("avx", "avx2", "fma"))},
        {"flags": ()},
    ],
    ids=lambda change: next(iter(change)),
)
def test_everything_that_decides_the_compiled_bytes_is_in_the_key(change: dict[str, Any]) -> None:
    assert dataclasses.replace(SPEC, **change).key != SPEC.key


def test_a_manifest_reads_back_as_it_was_written() -> None:
    manifest = EngineManifest(
        key=SPEC.key,
        spec=SPEC,
        engine=digest_bytes(b"engine"),
        size_bytes=6,
        state=EngineState.VERIFIED,
        build_log=digest_bytes(b"log"),
        phases=(BuildPhase("compile", 12.5),),
        canary_inputs=digest_bytes(b"canary"),
        parity=digest_bytes(b"parity"),
        verified_on=SPEC.target,
        inputs=(TensorSpec("pixels", DType.FP32, ("batch", 3), Meaning.PIXELS),),
        outputs=(TensorSpec("features", DType.FP32, ("batch", 8), Meaning.LOGITS),),
        canary_outputs=(CanaryOutput("features", (2, 8), 1.0, (0.5, 1.0)),),
    )
    assert load(EngineManifest, canonical_json(manifest)) == manifest


@pytest.mark.parametrize(
    "shapes", [((1,), (1, 2), (1, 2)), ((2,), (1,), (3,)), ((0,), (1,), (1,)), ((1,), (3,), (2,))]
)
def test_a_shape_range_out_of_order_is_refused(shapes: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(BadInput):
        ShapeRange("x", *shapes)
