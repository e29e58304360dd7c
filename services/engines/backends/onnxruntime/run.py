"""Runs an optimised graph with ONNX Runtime as it was saved, without optimising again."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from services.engines.backends.onnxruntime.build import PROVIDERS, options
from services.engines.backends.onnxruntime.probe import library
from services.engines.backends.protocol import Session
from validators.contracts.engine import EngineSpec
from validators.contracts.errors import Refused
from validators.contracts.ports import Tensors


class OnnxRuntimeSession:
    """An inference session; its `run` is safe to call from several threads."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._names = [item.name for item in session.get_outputs()]

    def infer(self, feeds: Tensors) -> dict[str, npt.NDArray[Any]]:
        answer = self._session.run(self._names, dict(feeds))
        return dict(zip(self._names, answer, strict=True))

    def close(self) -> None:
        self._session = None


def open_session(spec: EngineSpec, engine: bytes, threads: int) -> Session:
    ort = library()
    try:
        session = ort.InferenceSession(
            engine, options(ort, threads, optimise=False), providers=PROVIDERS
        )
    except Exception as error:  # its exceptions share no base but Exception
        raise Refused(
            f"ONNX Runtime does not take this engine: {str(error).strip()[:200]}",
            where=spec.encoder,
            remedy="Build it again with the installed version.",
        ) from error
    return OnnxRuntimeSession(session)
