"""Runs an OpenVINO blob: one infer request per concurrent call, outputs copied."""

from __future__ import annotations

import io
import queue
from typing import Any

import numpy as np
import numpy.typing as npt

from services.engines.backends.openvino.build import configuration, require_hint
from services.engines.backends.openvino.probe import library
from services.engines.backends.protocol import Session
from validators.contracts.engine import EngineSpec
from validators.contracts.errors import Refused
from validators.contracts.ports import Tensors


class OpenVinoSession:
    """A compiled model and the infer requests that are idle; a call without one makes one."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self._outputs = [(port.get_any_name(), port) for port in compiled.outputs]
        self._idle: queue.LifoQueue[Any] = queue.LifoQueue()

    def infer(self, feeds: Tensors) -> dict[str, npt.NDArray[Any]]:
        request = self._take()
        try:
            answer = request.infer(dict(feeds), share_inputs=True)
            # the request owns these arrays and overwrites them in its next call
            return {name: np.array(answer[port], copy=True) for name, port in self._outputs}
        finally:
            self._idle.put(request)

    def close(self) -> None:
        self._idle = queue.LifoQueue()
        self._compiled = None
        self._outputs = []

    def _take(self) -> Any:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self._compiled.create_infer_request()


def open_session(spec: EngineSpec, engine: bytes, threads: int) -> Session:
    ov = library()
    try:
        compiled = ov.Core().import_model(io.BytesIO(engine), "CPU", configuration(spec, threads))
    except RuntimeError as error:
        lines = str(error).strip().splitlines() or ["no reason given"]
        raise Refused(
            f"OpenVINO does not take this engine: {lines[-1][:200]}",
            where=spec.encoder,
            remedy="Build it again with the installed version.",
        ) from error
    require_hint(ov, compiled, spec)
    return OpenVinoSession(compiled)
