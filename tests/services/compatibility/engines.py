"""Engines over plain functions, for tests of what is done with their outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from services.compatibility.compare import EncoderVersion
from validators.contracts.digest import digest_bytes
from validators.contracts.encoder import EncoderContract, PreprocessSpec
from validators.contracts.engine import (
    EngineManifest,
    EngineSpec,
    EngineState,
    HostIdentity,
    Precision,
)
from validators.contracts.ports import Tensors
from validators.contracts.tensors import DType, Meaning, TensorSpec

Array = npt.NDArray[Any]
Function = Callable[[Tensors], Mapping[str, Array]]

CONTRACT = EncoderContract(
    "image",
    "1.0.0",
    "image",
    (TensorSpec("pixels", DType.FP32, ("batch", 16), Meaning.PIXELS),),
    (
        TensorSpec("features", DType.FP32, ("batch", 8), Meaning.GLOBAL_EMBEDDING, space="one"),
        TensorSpec("logits", DType.FP32, ("batch", 4), Meaning.LOGITS),
    ),
    PreprocessSpec("image", (("size", 224),)),
)


class FunctionEngine:
    """Implements the `RunningEngine` port."""

    def __init__(self, function: Function, precision: Precision = Precision.FP32) -> None:
        some = digest_bytes(b"")
        spec = EngineSpec(
            "image", some, "numpy", np.__version__, precision, (), HostIdentity("cpu", "any")
        )
        self._function = function
        self._manifest = EngineManifest(
            key=spec.key,
            spec=spec,
            engine=some,
            size_bytes=0,
            state=EngineState.VERIFIED,
            build_log=some,
            phases=(),
            inputs=CONTRACT.inputs,
            outputs=CONTRACT.outputs,
        )

    @property
    def manifest(self) -> EngineManifest:
        return self._manifest

    def run(self, feeds: Tensors) -> dict[str, Array]:
        return {name: np.array(value) for name, value in self._function(feeds).items()}

    def close(self) -> None:
        return


def linear(weight: Array, scale: float = 1.0) -> Function:
    """features = pixels @ weight, logits its first four columns."""

    def run(feeds: Tensors) -> Mapping[str, Array]:
        features = scale * (feeds["pixels"] @ weight)
        return {"features": features, "logits": features[:, :4]}

    return run


def version(number: str, function: Function, **contract: Any) -> EncoderVersion:
    return EncoderVersion(replace(CONTRACT, version=number, **contract), FunctionEngine(function))


def pairs(items: Sequence[Array]) -> list[tuple[Tensors, Tensors]]:
    return [({"pixels": item}, {"pixels": item}) for item in items]
